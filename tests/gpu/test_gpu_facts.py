"""Facts of a machine with a GPU agree with its driver, and decisions follow from them."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace

import pytest

from gpufleet.doctor.hardware import judge_gpu_health
from gpufleet.facts.model import NodeFacts
from gpufleet.node.catalog import load_catalog
from tests.gpu.conftest import VERSION, gather, smi
from tests.unit.hosts import plan_for

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.claim(
        "On a real GPU, the facts agree with nvidia-smi, and the catalog knows the GPU and "
        "its driver.",
        level=8,
    ),
]


def test_facts_agree_with_nvidia_smi(facts: NodeFacts) -> None:
    found = smi()
    assert {gpu.slot for gpu in facts.gpus} == set(found.gpus)
    assert set(facts.taken) == set(found.gpus)
    assert all(gpu.driver == "nvidia" and gpu.answers for gpu in facts.gpus)
    assert facts.loaded_driver == found.driver
    assert found.driver in VERSION.read_text()
    nodes = {f"/dev/nvidia{minor}" for minor in found.minors} | {"/dev/nvidiactl"}
    assert nodes <= set(facts.device_nodes)


@pytest.mark.parametrize("shell", ["dash", "bash", "busybox"])
def test_every_shell_finds_the_same(facts: NodeFacts, shell: str) -> None:
    if not shutil.which(shell):
        pytest.skip(f"{shell} is not installed here")
    found = gather(*([shell, "sh"] if shell == "busybox" else [shell]))
    assert replace(found, clock=0, free_bytes={}) == replace(facts, clock=0, free_bytes={})


def test_a_program_on_a_gpu_is_found_until_it_ends(
    program: subprocess.Popen[str],
) -> None:
    (found,) = [one for one in gather("sh").gpu_processes if one.pid == program.pid]
    assert {"/dev/nvidiactl", "/dev/nvidia-uvm"} <= set(found.devices)
    assert any(device.removeprefix("/dev/nvidia").isdigit() for device in found.devices)
    assert program.pid in smi().pids
    program.communicate()
    assert program.pid not in {one.pid for one in gather("sh").gpu_processes}


@pytest.mark.claim(
    "On a real GPU, a program that computes blocks another driver until it ends.",
    level=8,
)
def test_a_program_on_a_gpu_blocks_another_driver(program: subprocess.Popen[str]) -> None:
    facts = gather("sh")
    other = "595.71.05" if not (facts.loaded_driver or "").startswith("595.") else "580.95.05"
    for data, blocks in (({}, True), ({"driver_allow_disruption": True}, False)):
        plan = plan_for(facts, driver_version=other, **data)
        busy = [f for f in plan.findings if f.code == "GF530" and f.blocks]
        assert bool(busy) is blocks
        assert all(f"({program.pid})" in finding.message for finding in busy)


@pytest.mark.claim(
    "On a real GPU, its health is read with one command.",
    level=8,
)
def test_the_health_of_the_gpu_is_read() -> None:
    health = gather("sh", health=True).health
    assert health is not None
    assert health.error == ""
    assert {gpu.slot: gpu.model for gpu in health.gpus} == smi().gpus
    for gpu in health.gpus:
        assert gpu.uuid
        assert gpu.temperature
        assert gpu.memory_mib
        assert gpu.power_limit
        assert gpu.pcie_width
        assert gpu.slowdowns is not None
        assert gpu.ecc_volatile_uncorrected == 0
    problems = judge_gpu_health(health, ())
    assert not [each for each in problems if each.severity == "critical"]


def test_the_catalog_knows_the_gpu_and_its_driver(facts: NodeFacts) -> None:
    found, catalog = smi(), load_catalog()
    for gpu in facts.gpus:
        product, known = found.gpus[gpu.slot].removeprefix("NVIDIA "), catalog.gpu(gpu.device)
        assert known, f"{product} is {gpu.device:#06x}"
        assert any(product.startswith(name) for name in known.names), (product, known.names)
    branch = found.driver.split(".")[0]
    choice = plan_for(facts, driver_branch=branch).choice
    assert choice.branch == branch
    assert not [finding for finding in choice.findings if finding.blocks]
    loaded = "open" if "Open Kernel Module" in VERSION.read_text() else "proprietary"
    assert loaded == choice.modules
