"""A user ID without a name, as in a container of OpenShift or a Jenkins agent."""

from __future__ import annotations

import io
import os
import pwd

import paramiko
import pytest

from gpufleet.run.connection import name_user

CONFIG = "Host gpu-1\n  IdentityFile ~/.ssh/fleet\n"


@pytest.mark.parametrize("error", [KeyError, OSError])
def test_an_ssh_config_is_read_for_it(
    error: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    def unknown(number: int) -> None:
        raise error(f"uid not found: {number}")

    monkeypatch.setattr(pwd, "getpwuid", unknown)
    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.setenv(name, "")  # restored after the test
    config = paramiko.SSHConfig.from_file(io.StringIO(CONFIG))
    with pytest.raises((KeyError, OSError)):  # getpass makes it an OSError from Python 3.13 on
        config.lookup("gpu-1")
    name_user()
    assert config.lookup("gpu-1")["identityfile"][0].endswith("/.ssh/fleet")
    assert os.environ["LOGNAME"] == str(os.getuid())


def test_a_name_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOGNAME", "ada")
    name_user()
    assert os.environ["LOGNAME"] == "ada"
