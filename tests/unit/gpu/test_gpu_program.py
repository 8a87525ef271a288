"""The program that gives the GPUs their layout, in a shell, with a simulated nvidia-smi."""

from __future__ import annotations

import fcntl
import os
import subprocess
from pathlib import Path

import pytest

from gpufleet.core.render import render_template
from gpufleet.gpu.files import UNIT_SECONDS, layout_files
from gpufleet.host.shell import script_command

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


def run(
    folder: Path, words: str, shell: str = "sh", arguments: tuple[str, ...] = ()
) -> subprocess.CompletedProcess[str]:
    """The program with these words for a GPU. `folder` also has the state of the GPU."""
    program = render_template("gpu/gpufleet-gpus", file=str(folder / "wanted"))
    program = program.replace("/run/gpufleet-gpus.lock", str(folder / "lock"))
    program = program.replace("\nPATH=", f"\nPATH={folder}:").replace("flock -w 300", "flock -w 1")
    for name, text in {"nvidia-smi": SMI, "systemctl": SYSTEMCTL, "program": program}.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    (folder / "wanted").write_text(f"0000:17:00.0 {words}\n")
    return subprocess.run(
        [shell, str(folder / "program"), *arguments], env={**os.environ, "STATE": str(folder)},
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


def test_a_drained_host_is_reset_whatever_its_file_says_of_a_boot(tmp_path: Path) -> None:
    run(tmp_path, "mig=1g.10gb")
    run(tmp_path, "mig=1g.10gb", arguments=("", ""))
    assert not (tmp_path / "reset_with").exists()
    run(tmp_path, "mig=1g.10gb", arguments=("", "reset"))
    assert (tmp_path / "reset_with").exists()


LISTED = """GPU 0: NVIDIA A100 (UUID: GPU-1)
  MIG 1g.10gb     Device  0: (UUID: MIG-1)
  MIG 3g.40gb     Device  1: (UUID: MIG-2)
GPU 1: NVIDIA A100 (UUID: GPU-2)
"""
TWO_GPUS = f"""#!/bin/sh
case "$*" in
    -L) printf '%s' '{LISTED}' ;;
    *index,*) printf '%s\\n' '0, 00000000:17:00.0' '1, 00000000:65:00.0' ;;
    *'-i 0'*mig.mode.current*) echo Enabled ;;
    *mig.mode.current*) echo '[N/A]' ;;
    *ecc.mode.current*) echo Enabled ;;
esac
"""


@pytest.mark.parametrize(
    ("lines", "wrong"),
    [
        ("0000:17:00.0 mig=3g.40gb,1g.10gb ecc=1 power=300\n0000:65:00.0 mig=off reset=1", ""),
        ("# text\n0000:17:00.0 mig=3g.40gb", "MIG device is 3g.40gb,1g.10gb,, not 3g.40gb,"),
        ("0000:17:00.0 mig=off", "MIG mode is Enabled, not Disabled"),
        ("0000:65:00.0 ecc=0", "ECC is Enabled, not Disabled"),
        ("0000:65:00.0 mig=1g.10gb", "MIG device is nothing, not 1g.10gb,"),
        ("0000:66:00.0 mig=off", "the GPU of nvidia-smi is nothing"),
    ],
)
def test_a_layout_is_compared_with_what_nvidia_smi_lists(
    lines: str, wrong: str, tmp_path: Path
) -> None:
    (tmp_path / "nvidia-smi").write_text(TWO_GPUS)
    (tmp_path / "nvidia-smi").chmod(0o755)
    (tmp_path / "wanted").write_text(f"{lines}\n")
    words = ("GF490 message", str(tmp_path / "wanted"))
    command = script_command("gpu/check_layout", *words).get_raw_value()
    command = command.replace("\nPATH=", f"\nPATH={tmp_path}:", 1)
    done = subprocess.run(
        ["sh", "-c", command], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == bool(wrong), done.stderr
    assert ("GF490 message" in done.stderr) == bool(wrong)
    assert wrong in done.stderr


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
