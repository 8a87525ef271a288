"""The program that gives the GPUs their layout, in a shell, with a simulated nvidia-smi."""

from __future__ import annotations

import fcntl
import os
import subprocess
from pathlib import Path

import pytest

from gpufleet.core.render import render_template
from gpufleet.gpu.files import UNIT_SECONDS, layout_files

pytestmark = pytest.mark.claim(
    "The boot waits for no service that waits for the GPUs' layout.", level=1
)

SMI = r"""#!/bin/sh
# A GPU whose reset is not possible, of 198.75 W. A file in $STATE has each value that was set.
get() { cat "$STATE/$1" 2>/dev/null || echo "$2"; }
case "$*" in
    *--query-gpu=index,*) echo '0, 00000000:17:00.0' ;;
    *--query-gpu=mig.mode.current,*) echo "Disabled, $(get mig Disabled)" ;;
    *--query-gpu=mig.mode.current*) echo Disabled ;;
    *--query-gpu=power.default_limit*) echo 198.75 ;;
    *--query-gpu=power.limit*) get power 150.00 ;;
    *' -mig 1') echo Enabled >"$STATE/mig" ;;
    *' -pl '*) shift 3; echo "$1" >"$STATE/power" ;;
    *--query-gpu=persistence_mode*) get persistence Disabled ;;
    *' -pm 0') echo Disabled >"$STATE/persistence" ;;
    *' -pm 1') echo Enabled >"$STATE/persistence" ;;
    *' -r')
        get persistence Disabled >"$STATE/reset_with"
        echo 'GPU reset is not possible'
        ;;
esac
[ ! -e "$STATE/warns" ] || echo 'WARNING: infoROM is corrupted at gpu 0000:17:00.0'
"""
SYSTEMCTL = """#!/bin/sh
echo "$*" >>"$STATE/units"
case $* in
    'is-active -q nvidia-dcgm' | 'is-active -q dcgm' | *'-q nvidia-persistenced') exit 0 ;;
    is-active*) exit 3 ;;
esac
"""


def run(folder: Path, words: str, shell: str = "sh") -> subprocess.CompletedProcess[str]:
    """The program with these words for a GPU. `folder` also has the state of the GPU."""
    program = render_template("gpu/gpufleet-gpus", file=str(folder / "wanted"))
    program = program.replace("/run/gpufleet-gpus.lock", str(folder / "lock"))
    program = program.replace("\nPATH=", f"\nPATH={folder}:").replace("flock -w 300", "flock -w 1")
    for name, text in {"nvidia-smi": SMI, "systemctl": SYSTEMCTL, "program": program}.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    (folder / "wanted").write_text(f"0000:17:00.0 {words}\n")
    return subprocess.run(
        [shell, str(folder / "program")], env={**os.environ, "STATE": str(folder)},
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


def test_services_that_wait_for_the_unit_are_started_without_waiting(tmp_path: Path) -> None:
    done = run(tmp_path, "mig=1g.10gb reset=1")
    assert done.returncode == 3, done.stdout + done.stderr
    said = (tmp_path / "units").read_text().splitlines()
    assert "stop nvidia-dcgm" in said
    assert "stop dcgm" in said  # its name in earlier versions
    assert "start nvidia-persistenced" in said  # settings after it must last
    assert "--no-block start nvidia-dcgm" in said
    assert "--no-block start dcgm" in said


def test_persistence_mode_without_its_daemon_is_off_during_a_reset(tmp_path: Path) -> None:
    (tmp_path / "persistence").write_text("Enabled\n")  # by `nvidia-smi -pm 1`
    run(tmp_path, "mig=1g.10gb reset=1")
    assert (tmp_path / "reset_with").read_text() == "Disabled\n"
    assert (tmp_path / "persistence").read_text() == "Enabled\n"


def test_a_default_limit_with_a_fraction_is_set_whole(tmp_path: Path) -> None:
    done = run(tmp_path, "power=default")
    assert (done.returncode, done.stdout) == (0, "changed 0000:17:00.0: power\n"), done.stderr
    assert (tmp_path / "power").read_text() == "198.75\n"


def test_a_warning_of_nvidia_smi_is_no_value(tmp_path: Path) -> None:
    (tmp_path / "warns").touch()
    done = run(tmp_path, "mig=off power=150")
    assert (done.returncode, done.stdout) == (0, ""), done.stderr


def test_a_run_that_still_hangs_is_named(tmp_path: Path) -> None:
    with (tmp_path / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = run(tmp_path, "mig=off")
    assert done.returncode == 1
    assert "another run" in done.stdout


def test_every_kubelet_waits_for_the_layout() -> None:
    unit = next(file for file in layout_files({}) if file.path.endswith(".service"))
    [before] = [line for line in str(unit.content).splitlines() if line.startswith("Before=")]
    for name in ("kubelet", "k3s", "k3s-agent", "rke2-server", "rke2-agent", "slurmd", "dcgm"):
        assert f"{name}.service" in before
    assert f"TimeoutStartSec={UNIT_SECONDS}" in str(unit.content)
