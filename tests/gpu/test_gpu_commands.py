"""Commands and scripts on the machine that they run on, with a real GPU."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gpufleet.facts.gpu import CdiSpec
from gpufleet.facts.model import NodeFacts
from gpufleet.host.shell import script_command, script_file
from gpufleet.node.catalog import load_catalog
from gpufleet.verify.node import PROVENANCE_PATH
from tests.gpu.conftest import ROOT, VERSION, gather, gpufleet, smi

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.claim(
        "`doctor`, `plan`, `verify`, the health that an upgrade reads and the "
        "node-problem-detector's scripts work on a real GPU.",
        level=8,
    ),
]

PROBLEMS = ROOT / "templates" / "monitoring" / "node-problems"
# checks that a driver passes wherever it came from, by the recorded version
OF_A_DRIVER = {
    "reachable", "provenance", "module_loaded", "library", "no_nouveau", "device_nodes",
    "gpu_count",
}  # fmt: skip


def shell(command: str) -> str:
    return subprocess.run(
        ["sh", "-c", command], capture_output=True, text=True, timeout=120, check=True
    ).stdout


def in_depth(inventory: Path) -> dict[str, Any]:
    done = gpufleet("doctor", inventory, "--json")
    found: dict[str, Any] = json.loads(done.stdout)["hosts"]["@local"]
    return found


def machine() -> dict[str, str]:
    """The state that a plan must not change: packages, files of apt and of module loading."""
    listed = subprocess.run(["dpkg", "-l"], capture_output=True, text=True, check=False).stdout
    paths = [path for name in ("apt", "modprobe.d", "modules-load.d")
             for path in Path("/etc", name).rglob("*") if path.is_file()]  # fmt: skip
    return {"packages": listed, **{str(path): str(path.stat()) for path in paths}}


@pytest.fixture
def recorded(facts: NodeFacts) -> Iterator[Path]:
    """A record of the loaded driver, as if gpufleet had installed it, on a machine without
    containers or other runs, which would use the record too."""
    path = Path(PROVENANCE_PATH)
    if facts.runtimes or facts.kubelet or facts.cdi_specs or path.exists():
        pytest.skip("this machine runs containers or has a record: `gpufleet verify` checks it")
    version = facts.loaded_driver or ""
    modules = "open" if "Open Kernel Module" in VERSION.read_text() else "proprietary"
    branch = version.split(".")[0]
    driver = {"version": version, "branch": branch, "modules": modules, "build": "precompiled"}
    added = not path.parent.exists()
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"schema": 1, "driver": driver}))
    yield path
    path.unlink()
    if added:
        path.parent.rmdir()


@pytest.fixture
def spec(recorded: Path) -> Iterator[Path]:
    """A CDI spec of the real nvidia-ctk, written as by the role, and recorded."""
    if not shutil.which("nvidia-ctk"):
        pytest.skip("nvidia-ctk is not installed here")
    path = Path("/etc/cdi/gpufleet-test.yaml")
    added = not path.parent.exists()
    words = ("nvidia-ctk", "cdi", "generate", f"--output={path}")
    record = json.loads(recorded.read_text())
    toolkit = {"version": "1.20.1", "cdi": {"path": str(path)}}
    try:
        shell(script_command("toolkit/cdi_generate", str(path), *words).get_raw_value())
        recorded.write_text(json.dumps({**record, "toolkit": toolkit}))
        yield path
    finally:
        path.unlink(missing_ok=True)
        if added and path.parent.exists():
            path.parent.rmdir()


def checks(inventory: Path, report: Path) -> dict[str, dict[str, Any]]:
    """The results of `gpufleet verify` on this machine, by check."""
    gpufleet("verify", inventory, "--json", report)
    found: dict[str, dict[str, Any]] = json.loads(report.read_text())["hosts"]["@local"]["checks"]
    return found


def test_doctor_shows_the_gpus(inventory: Path, facts: NodeFacts) -> None:
    found = in_depth(inventory)
    slots = {gpu["slot"] for gpu in found["gpus"]}
    assert slots == set(smi().gpus)
    assert found["driver"]["loaded"] == facts.loaded_driver
    names = [name for gpu in facts.gpus for name in load_catalog().gpu(gpu.device).names]  # type: ignore[union-attr]
    assert all(gpu["model"] in names for gpu in found["gpus"])


def test_doctor_passes_a_healthy_gpu(inventory: Path) -> None:
    found = in_depth(inventory)
    assert found["verdict"] == "PASS", found["causes"]
    verdicts = {each["check"]: each["verdict"] for each in found["checks"]}
    assert {verdicts[name] for name in ("gpu.lost", "chain.nvml", "host.readings")} == {"PASS"}


def test_doctor_names_the_program(inventory: Path, program: subprocess.Popen[str]) -> None:
    assert str(program.pid) in " ".join(in_depth(inventory)["gpu_processes"])


def test_a_plan_changes_nothing(inventory: Path, facts: NodeFacts) -> None:
    """A driver without packages blocks it, and is accepted by `driver_enabled = False`."""
    before = machine()
    done = gpufleet("plan", inventory)
    assert ("GF146" in done.stdout) == bool(facts.foreign_driver), done.stdout
    if facts.foreign_driver:
        assert done.returncode != 0
        assert facts.foreign_driver in " ".join(done.stdout.split())
    inventory.write_text('gpu_nodes = (["@local"], {"driver_enabled": False})\n')
    done = gpufleet("plan", inventory)
    assert "GF146" not in done.stdout
    assert done.returncode == 0, done.stdout + done.stderr
    assert machine() == before


@pytest.mark.usefixtures("recorded")
def test_the_checks_of_a_driver_pass(inventory: Path, tmp_path: Path) -> None:
    found = checks(inventory, tmp_path / "report.json")
    outcomes = {name: found[name]["outcome"] for name in OF_A_DRIVER}
    assert outcomes == dict.fromkeys(OF_A_DRIVER, "passed"), found


@pytest.mark.claim(
    "The CDI spec of the real nvidia-ctk has the loaded driver's libraries and every GPU.",
    level=8,
)
def test_a_cdi_spec_has_the_driver_and_every_gpu(
    spec: Path, inventory: Path, tmp_path: Path
) -> None:
    facts = gather("sh")
    assert CdiSpec(str(spec), facts.loaded_driver or "") in facts.cdi_specs
    found = checks(inventory, tmp_path / "report.json")["cdi_spec"]
    assert found["outcome"] == "passed", found
    spec.write_text(spec.read_text().replace(facts.loaded_driver or "", "470.57.02"))
    found = checks(inventory, tmp_path / "second.json")["cdi_spec"]
    assert "470.57.02" in found["message"], found


@pytest.mark.parametrize(
    "words",
    [("gpu-bus.sh", "600"), ("gpu-devices.sh", "nvidiactl"), ("gpu-library.sh",),
     ("gpu-xid.sh", "600", "except", "13", "31")],
    ids=lambda words: words[0],
)  # fmt: skip
def test_node_problem_detector_sees_no_problem(words: tuple[str, ...], facts: NodeFacts) -> None:
    done = subprocess.run(
        ["sh", PROBLEMS / words[0], *words[1:]],
        env={**os.environ, "HOST_ROOT": ""},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    unknown = (
        words[0] == "gpu-library.sh" and facts.library is None
    )  # it looks where packages have it
    assert done.returncode == (2 if unknown else 0), done.stdout


@pytest.fixture
def _on_the_path() -> Iterator[None]:
    """Link nvidia-smi into a system folder if it is not in one: scripts search only these."""
    link, program = Path("/usr/local/bin/nvidia-smi"), shutil.which("nvidia-smi")
    if shutil.which(
        "nvidia-smi", path="/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    ):
        yield
        return
    assert program
    link.symlink_to(program)
    yield
    link.unlink()


@pytest.mark.usefixtures("_on_the_path")
def test_an_upgrade_reads_the_health() -> None:
    printed = shell(script_command("upgrade/health", "60").get_raw_value())
    assert f"gpus {len(smi().gpus)}\n" in printed


def test_what_unloads_a_driver_sees_the_program(program: subprocess.Popen[str]) -> None:
    work = script_file("host/gpu_work").read_text() + "gpu_work"
    assert f"(process {program.pid}" in shell(work)
    program.communicate()
    assert f"(process {program.pid}" not in shell(work)
