"""The real nvidia-mig-parted and gpufleet judge the MIG layouts that the other has made."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from gpufleet.facts.gpu import LAYOUT_FILE
from gpufleet.gpu.files import PROGRAM
from gpufleet_sandbox.cluster.build import program
from gpufleet_sandbox.kinds import Device
from gpufleet_sandbox.machine import build, nvidia_smi
from gpufleet_sandbox.machine.pci import write_device
from gpufleet_sandbox.paths import cache_dir
from tests.selection import some
from tests.unit.gpu.gpu_host import SLOTS, gpu_host, gpu_plan, state_of

pytestmark = pytest.mark.hosts

HERE = Path(__file__).parent
HOSTS: dict[str, dict[str, Any]] = yaml.safe_load((HERE / "mig_layouts.yaml").read_text())
NAMESPACES = ("unshare", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child")
SECONDS = 120
AGREED = {
    "made": 0,
    "asserted": 0,
    "other": 1,  # the file of another layout
    "off": 0,
    "applied": 0,
    "adopted": 0,
}


def write_machine(folder: Path, host: dict[str, Any]) -> None:
    """The simulated machine, its bus with two GPUs, and the programs for it."""
    shutil.copytree(build(cache_dir()), folder / "machine")
    for name in ("gpus.txt", "mig.txt"):
        with (folder / "machine" / name).open("a") as table:
            table.write(host.get(name, ""))
    for slot in SLOTS:
        write_device(folder / "pci", Device(slot, host["device"], 0x1463))
    programs = folder / "programs"
    programs.mkdir()
    parted = program("nvidia-mig-parted", cache_dir() / "go", print)
    for path in (nvidia_smi(cache_dir()), parted):
        shutil.copy(path, programs)
    (programs / "systemctl").write_text("#!/bin/sh\nexit 3\n")  # no unit is active
    (programs / "systemctl").chmod(0o755)


def write_cases(folder: Path, host: dict[str, Any]) -> None:
    """A folder per layout: the file of gpufleet's plan, the equal one, one of another layout."""
    layouts = host["layouts"]
    for number, layout in enumerate(layouts):
        case = folder / "cases" / str(number)
        case.mkdir(parents=True)
        plan = gpu_plan(
            gpu_host(*map(state_of, SLOTS), device=host["device"]),
            gpu_mig=layout["gpu_mig"], gpu_allow_reset=True,
        )  # fmt: skip
        files = {file.path: str(file.content) for file in plan.wanted_files}
        (case / "wanted").write_text(files[LAYOUT_FILE])
        (folder / "programs" / Path(PROGRAM).name).write_text(files[PROGRAM])
        (folder / "programs" / Path(PROGRAM).name).chmod(0o755)
        write_config(case / "equal.yaml", layout["equal"])
        write_config(case / "other.yaml", layouts[number - 1]["equal"])
    write_config(folder / "off.yaml", [{"devices": "all", "mig-enabled": False}])


def write_config(path: Path, specs: list[Any]) -> None:
    path.write_text(yaml.safe_dump({"version": "v1", "mig-configs": {"wanted": specs}}))


@pytest.mark.claim(
    "nvidia-mig-parted 0.13.1 finds its own layout in what gpufleet makes of 30 layouts, and "
    "gpufleet changes nothing where mig-parted has made them.",
    level=3,
)
@pytest.mark.parametrize("name", some(HOSTS, ["A100 80 GB", "A30"]))
def test_mig_parted_agrees(name: str, tmp_path: Path) -> None:
    host = HOSTS[name]
    write_machine(tmp_path, host)
    write_cases(tmp_path, host)
    folders = [tmp_path / each for each in ("machine", "pci", "programs", "cases")]
    done = subprocess.run(
        [*NAMESPACES, "sh", HERE / "mig_parted.sh", *folders],
        capture_output=True, text=True, timeout=SECONDS, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    for number, layout in enumerate(host["layouts"]):
        said = {step: (tmp_path / "cases" / str(number) / step).read_text() for step in AGREED}
        status = {step: int(text.rpartition("status ")[2]) for step, text in said.items()}
        assert status == AGREED, f"{layout['gpu_mig']}: {said}"
        assert said["adopted"] == "status 0\n", f"{layout['gpu_mig']}: mig-parted's is not ours"


def test_there_are_thirty_layouts() -> None:
    assert sum(len(host["layouts"]) for host in HOSTS.values()) == 30
