"""The persistence daemon gets persistence mode from Ubuntu's unit, and keeps a user's command."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from gpufleet.host.shell import script_command

PACKAGED = "/usr/bin/nvidia-persistenced --user nvidia-persistenced --no-persistence-mode --verbose"
UNIT = f"# /lib/systemd/system/nvidia-persistenced.service\n[Service]\nExecStart={PACKAGED}\n"
OURS = "# /etc/systemd/system/nvidia-persistenced.service.d/gpufleet.conf\n[Service]\nExecStart=\n"
USERS = (
    "# /etc/systemd/system/nvidia-persistenced.service.d/10-confidential.conf\n[Service]\n"
    "ExecStart=\nExecStart=/usr/bin/nvidia-persistenced --uvm-persistence-mode --verbose\n"
)
SYSTEMCTL = """#!/bin/sh
[ "$1" != cat ] || cat {folder}/unit
exit 0
"""


@pytest.mark.parametrize(
    ("unit", "written"),
    [
        (UNIT, True),
        (f"{UNIT}\n{OURS}ExecStart={PACKAGED.replace('--no-', '--')}\n", True),
        (f"{UNIT}\n{USERS}", False),
        (UNIT.replace("--no-persistence-mode ", ""), False),
        ("", False),
    ],
)
def test_only_a_command_without_persistence_mode_is_replaced(
    tmp_path: Path, unit: str, written: bool
) -> None:
    (tmp_path / "unit").write_text(unit)
    (tmp_path / "systemctl").write_text(SYSTEMCTL.format(folder=tmp_path))
    (tmp_path / "systemctl").chmod(0o755)
    words = ("driver/services", "GF553", "nvidia-persistenced")
    command = script_command(*words).get_raw_value().replace("/etc/systemd", f"{tmp_path}/systemd")
    command = command.replace("\nPATH=", f"\nPATH={tmp_path}:", 1)
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    override = tmp_path / "systemd/system/nvidia-persistenced.service.d/gpufleet.conf"
    assert override.exists() is written
    if written:
        assert f"ExecStart={PACKAGED.replace('--no-', '--')}\n" in override.read_text()
