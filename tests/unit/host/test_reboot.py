"""How a connection may end while its host reboots, and how the reboot handles that."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
from paramiko import SSHException
from pyinfra.api.exceptions import ConnectError

from gpufleet.host import reboot
from gpufleet.host.asking import OUTPUT_MARK
from gpufleet.host.shell import script_command
from gpufleet.run.report import HostReport


class Unframed:
    """A command that failed without its closing mark; `stands`: the connection is still open."""

    def __init__(self, *lines: str, stands: bool) -> None:
        self.lines = list(lines)
        transport = SimpleNamespace(is_active=lambda: stands)
        self.connector = SimpleNamespace(client=SimpleNamespace(get_transport=lambda: transport))


class Rebooting:
    """A fake of pyinfra's host; `answers`: the result of each command in turn, or its exception."""

    name = print_prefix = "gpu-07"
    connector_data: ClassVar[dict[str, Any]] = {}

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)

    def run_shell_command(self, *_: Any, **__: Any) -> tuple[bool, Any]:
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        if isinstance(answer, Unframed):
            self.connector = answer.connector
            return False, SimpleNamespace(stdout_lines=answer.lines, stderr_lines=[])
        banner = f"Welcome, it is {len(self.answers)} o'clock"  # printed by .bashrc
        ok, lines, *said = answer if isinstance(answer, tuple) else (True, [answer])
        framed = [banner, "", OUTPUT_MARK, *lines, "", OUTPUT_MARK]
        return ok, SimpleNamespace(stdout_lines=framed, stderr_lines=said)

    connected = True

    def disconnect(self) -> None:
        self.connected = False

    def connect(self, **_: Any) -> None:
        assert not self.connected  # the old connection must be closed
        if isinstance(self.answers[0], ConnectError):
            raise self.answers.pop(0)
        self.connected = True


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Callable[..., bool]:
    """`run(answers…)`: whether the reboot succeeded."""
    monkeypatch.setattr(reboot, "REBOOT_POLL_SECONDS", 0)
    monkeypatch.setattr(reboot, "privilege_arguments", lambda _: {})

    def check(*answers: Any) -> bool:
        host = Rebooting(*answers)
        done = reboot._reboot(None, host, 60, False)  # type: ignore[arg-type]
        assert not host.answers
        return done

    return check


CUT = SSHException("Channel is not open")
INHIBITED = 'Operation inhibited by "dnf" (PID 7 "dnf", user root).'


@pytest.mark.parametrize(
    "answers",
    [
        ("old", "", "old", ConnectError(), "new"),
        ("old", "", CUT, ConnectError(), "", "new"),  # cut between the connection and the command
        ("old", "", EOFError(), OSError("reset by peer"), "new"),
        ("old", CUT, "new"),  # the reboot was quicker than the command that asked for it
        (
            "old",
            Unframed("", OUTPUT_MARK, stands=True),
            "old",
            "new",
        ),  # status -1, and no closing mark
        ("old", Unframed(stands=False), ConnectError(), "new"),
    ],
)
def test_a_reboot_is_waited_for_however_the_connection_ends(
    run: Callable[..., bool], answers: tuple[Any, ...]
) -> None:
    assert run(*answers) is True


def test_what_holds_the_reboot_up_is_named(
    run: Callable[..., bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    noted = HostReport("gpu-07")
    monkeypatch.setattr(reboot.RunReport, "of", lambda _: SimpleNamespace(host=lambda _: noted))
    assert run("old", (False, ["train (process 812)", "pod 1234"])) is False
    (finding,) = noted.findings
    assert finding.code == "GF535"
    assert "train (process 812), pod 1234." in finding.message


@pytest.mark.parametrize(
    ("answers", "code", "message"),
    [
        (("old", "", "old", "old"), "GF554", "a new boot ID within 60 seconds."),
        (((False, []),), "GF536", "not rebooted: its boot ID cannot be read."),
        (("old", (False, [])), "GF536", "not rebooted: the command that reboots it failed."),
        (("old", (False, [], INHIBITED)), "GF536", f"not rebooted: {INHIBITED}"),
        (("old", Unframed("sudo: a password is required", stands=True)), "GF536", "it failed."),
    ],
)
def test_why_a_host_did_not_come_back_or_was_not_rebooted(
    answers: tuple[Any, ...], code: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    noted, now = HostReport("gpu-07"), [0.0]
    monkeypatch.setattr(reboot.RunReport, "of", lambda _: SimpleNamespace(host=lambda _: noted))
    monkeypatch.setattr(reboot, "privilege_arguments", lambda _: {})
    monkeypatch.setattr(reboot.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(reboot.time, "sleep", lambda _: now.__setitem__(0, now[0] + 30.0))
    host = Rebooting(*answers)
    assert reboot._reboot(None, host, 60, False) is False  # type: ignore[arg-type]
    (finding,) = noted.findings
    assert (finding.code, host.answers) == (code, [])
    assert finding.message.endswith(message)


@pytest.mark.parametrize(
    ("state", "said"), [("running", "Operation inhibited\n"), ("stopping", "")]
)
def test_a_reboot_that_systemd_refuses_fails_with_its_reason(
    tmp_path: Path, state: str, said: str
) -> None:
    systemctl = tmp_path / "fake"
    refusal = 'echo "Operation inhibited" >&2; echo "Please retry" >&2; exit 1'
    systemctl.write_text(f"#!/bin/sh\ncase $1 in reboot) {refusal} ;; esac\necho {state}\n")
    systemctl.chmod(0o755)
    command = script_command("host/reboot", "").get_raw_value()
    words = ["sh", "-c", command.replace("systemctl", str(systemctl))]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (int(bool(said)), said)
