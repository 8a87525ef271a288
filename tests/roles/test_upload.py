"""Uploaded files are never readable by others, at any moment."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyinfra.connectors.fake import FakeConnector
from pyinfra.connectors.util import write_stdin

from gpufleet.host import files
from gpufleet.host.file_write import FileWrite
from gpufleet.host.shell import upload_command
from tests.unit.hosts import bare_host

pytestmark = pytest.mark.claim("Uploaded files are unreadable for other users.", level=2)

SECRET = "hunter2secret"


def receive(content: bytes, path: Path, cut: int | None = None) -> tuple[int, str]:
    """Run the command like pyinfra, with umask 000: exit status and errors."""
    command = upload_command(content, str(path))
    lines = command.connector_arguments["_stdin"]
    process = subprocess.Popen(
        ["sh", "-c", command.get_raw_value()], stdin=subprocess.PIPE, stderr=subprocess.PIPE,
        umask=0,
    )  # fmt: skip
    assert process.stdin
    write_stdin([line[:cut] for line in lines], process.stdin)
    process.stdin = None
    _, errors = process.communicate()
    return process.returncode, errors.decode()


@pytest.mark.parametrize("size", [0, 1, 1000, 12_287, 12_288, 12_289, 300_000])
def test_every_byte_arrives_and_root_alone_can_read_it(tmp_path: Path, size: int) -> None:
    content = os.urandom(size)
    assert receive(content, tmp_path / "file") == (0, "")
    assert (tmp_path / "file").read_bytes() == content
    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o600


def test_what_is_cut_off_is_an_error(tmp_path: Path) -> None:
    status, errors = receive(b"x" * 999, tmp_path / "file", cut=400)
    assert status == 1
    assert "did not arrive whole" in errors


def test_nothing_is_left_to_pyinfras_upload_and_no_secret_is_shown(
    carry_out: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """pyinfra writes the file to /tmp, with the umask of the user, before it copies it."""
    monkeypatch.delattr(FakeConnector, "put_file")
    wanted = [FileWrite("/etc/docker/daemon.json", SECRET, mode=0o600)]
    host = carry_out(lambda: files.write_files("Write", bare_host(), wanted))
    assert not host.failed
    assert any("receive" in command for command in host.commands)
    assert SECRET not in "".join(host.commands) + capsys.readouterr().err
