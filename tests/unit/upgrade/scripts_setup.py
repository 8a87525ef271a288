"""Shared by the tests of scripts."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from gpufleet.host.shell import script_command

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Run a script; programs in `fakes` come before those of the machine."""
    (tmp_path / "fakes").mkdir()

    def carry_out(name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = script_command(f"upgrade/{name}", *arguments).get_raw_value()
        command = command.replace("\nPATH=", f"\nPATH={tmp_path / 'fakes'}:", 1)
        command = command.replace("timeout -k 10 ", "timeout -k 1 ")
        return subprocess.run(
            ["sh", "-c", command], capture_output=True, text=True, check=False, timeout=900
        )

    return carry_out


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of a run with one package of version 1."""
    place = tmp_path / "upgrade"
    (place / "packages").mkdir(parents=True)
    (place / "packages/driver.rpm").write_text("package")
    done = subprocess.run(
        ["sha256sum", "./driver.rpm"], cwd=place / "packages", capture_output=True, check=True
    )
    (place / "sums").write_bytes(done.stdout)
    (place / "from").write_text("1\n")
    (place / "names").write_text("driver\n")
    return place


def fake(tmp_path: Path, name: str, text: str) -> None:
    program = tmp_path / "fakes" / name
    program.write_text(f"#!/bin/sh\n{text}\n")
    program.chmod(0o755)


CALLS = {
    "note": ("GF059 missing",),
    "take": ("1", "GF055 unusable"),
    "restore": ("1", "GF055 unusable", "GF057 failed", "dnf", "9"),
    "validate": ("1", "", "5", "GF054 differs"),
    "keep": ("b", "1", "GF051 not kept", "dnf", "5", "driver=1-1"),
}
RPM = """
case "$*" in
    '-qp --qf '*) echo driver=1-1 ;;
    '-q --qf '*) if [ -e DONE ]; then echo driver=1-1; else echo driver=2-1; fi ;;
    '-q gone') exit 1 ;;
    '-q '*) ;;
    *) echo "$*" >>ASKED; case $1 in FAILS) echo "error: $1"; exit 1 ;; esac; : >DONE ;;
esac
"""


def rpm(tmp_path: Path, fails: str = "-none") -> Path:
    """Install a fake rpm. Return the file in which it logs the requested changes."""
    asked = tmp_path / "asked"
    text = RPM.replace("DONE", str(tmp_path / "done")).replace("ASKED", str(asked))
    fake(tmp_path, "rpm", text.replace("FAILS", fails))
    return asked
