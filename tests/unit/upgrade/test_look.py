"""The view of a host: its target, the work on its GPUs, and the reasons to leave it out."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gpufleet.facts.gpu import Listed
from gpufleet.facts.model import DkmsModule, GpuProcess, ModuleOnDisk, NodeFacts
from gpufleet.facts.record import EMPTY_RECORD
from gpufleet.host.upgrade_settings import Subject
from gpufleet.node.catalog import load_catalog
from gpufleet.node.settings import load_node_settings
from gpufleet.role.place import NO_PLACE
from gpufleet.upgrade.look import NO_GPU_NOW, LookedHost, view_of
from gpufleet.upgrade.models import HostView

OLD, NEW = "580.159.03", "580.178.04"
DATA = {"toolkit_enabled": False, "driver_hold": True}


def view(facts: NodeFacts, listed: int = 1, subject: Subject = "driver", **data: Any) -> HostView:
    allowed = "toolkit_allow_change" if subject == "toolkit" else "driver_allow_change"
    settings, problems = load_node_settings({**DATA, allowed: True, **data})
    assert settings, problems
    seen = LookedHost("h", settings, facts, load_catalog(), facts.clock, {}, NO_PLACE, listed)
    return view_of(seen, "rack1", subject)


def codes(found: HostView) -> list[str]:
    return [reason.split()[0] for reason in found.refusals]


def test_a_host_and_its_group(converged: NodeFacts) -> None:
    found = view(converged, driver_version=NEW)
    assert (found.before, found.loaded, found.target) == (OLD, OLD, NEW)
    assert found.group.startswith("1 x A100")
    assert found.group.endswith(f"ubuntu2204, {converged.kernel.release}")
    assert found.place == "rack1"


def test_the_target_of_a_branch_is_the_newest_of_the_catalog(converged: NodeFacts) -> None:
    newest = {branch.branch: branch.newest for branch in load_catalog().branches.branches}
    assert view(converged, driver_branch="580").target == newest[580]


def test_no_version_that_nobody_requested_is_chosen(converged: NodeFacts) -> None:
    found = view(converged)
    assert (found.target, codes(found)) == (None, ["GF281"])
    assert of(converged, "toolkit", driver_version=None).target  # documented: the newest


def test_an_unknown_version_is_a_warning_and_an_unknown_branch_an_obstacle(
    converged: NodeFacts,
) -> None:
    newer = view(converged, driver_version="580.999.99")
    assert newer.refusals == view(converged, driver_version=NEW).refusals
    assert [each.split()[0] for each in newer.warnings] == ["GF111"]
    assert view(converged, driver_version=NEW).warnings == ()
    assert "GF111" in codes(view(converged, driver_version="999.1"))
    toolkit = of(converged, "toolkit", toolkit_version="1.99.0", driver_version="580.999.99")
    assert [each.split()[0] for each in toolkit.warnings] == ["GF162"]


def test_work_is_waited_for_and_no_obstacle(converged: NodeFacts) -> None:
    work = (GpuProcess(7, "python", ("/dev/nvidia0",), "python train.py"),)
    found = view(replace(converged, gpu_processes=work, gpu_pods=2), driver_version=NEW)
    assert found.work == ("2 GPU pods", "python train.py (7)")
    assert "GF530" not in codes(found)


def test_a_host_with_mig_devices_is_refused_once(converged: NodeFacts) -> None:
    host = replace(converged, listed=Listed(1, mig_devices=7))
    assert codes(view(host, driver_version=NEW)) == ["GF154"]
    allowed = codes(view(host, driver_version=NEW, driver_allow_mig_loss=True))
    assert allowed == codes(view(converged, driver_version=NEW))
    assert "GF154" in codes(view(host, driver_version=OLD))  # read by a roll-back
    assert codes(of(host, "toolkit")) == codes(of(converged, "toolkit"))


def test_a_host_that_would_be_changed_in_other_ways_is_left_out(bare: NodeFacts) -> None:
    found = view(replace(bare, modules={"nvidia": OLD}), driver_version=NEW)
    assert found.before is None
    assert not found.converged


def test_the_steps_of_a_host_that_is_not_converged_name_their_role_once(
    converged: NodeFacts,
) -> None:
    broken = view(replace(converged, module_on_disk=None), driver_version=NEW)
    (reason,) = (each for each in broken.refusals if each.startswith("GF058"))
    assert "driver: repair" in reason
    assert "driver: driver:" not in reason


@pytest.mark.parametrize(("count", "text"), [(1, "1 GPU pod"), (2, "2 GPU pods")])
def test_pods_are_counted(count: int, text: str, converged: NodeFacts) -> None:
    assert view(replace(converged, gpu_pods=count)).work == (text,)


def test_missing_gpus(converged: NodeFacts) -> None:
    found = view(converged, 0, driver_version=NEW)
    assert "GF052" in codes(found)


def test_a_gpu_that_left_the_bus_is_missing(converged: NodeFacts) -> None:
    """Neither lspci nor nvidia-smi shows such a GPU, but the driver still has it."""
    there = len(converged.gpus)
    lost = replace(converged, taken=("0000:f1:00.0", *(gpu.slot for gpu in converged.gpus)))
    assert "GF052" not in codes(view(converged, there, driver_version=NEW))
    assert "GF052" in codes(view(lost, there, driver_version=NEW))


def test_a_host_without_gpus_or_driver(converged: NodeFacts) -> None:
    lost = replace(converged, pci=())
    assert view(lost).refusals == (NO_GPU_NOW,)
    bare = replace(lost, modules={}, provenance=EMPTY_RECORD, module_on_disk=None, dkms=())
    assert view(bare).refusals == ("no GPU",)
    module = ModuleOnDisk("580.1", "NVIDIA")
    for installed in (
        replace(bare, module_on_disk=module),  # a reboot without the GPU: nothing is loaded
        replace(bare, dkms=(DkmsModule("nvidia", "580.1", "6.8", "built"),)),
        replace(bare, runfile_install=True),
        replace(bare, foreign_driver="its libraries are in /usr/local/nvidia/lib"),
        replace(bare, operator_driver=True),
        replace(bare, provenance=converged.provenance),
    ):
        assert view(installed).refusals == (NO_GPU_NOW,)
    for facts in (converged, replace(converged, pci=())):  # a host of a cluster without GPUs, too
        assert of(facts, "driver", driver_enabled=False).refusals == ("driver_enabled is False",)
        assert of(facts, "reboot", driver_enabled=False).refusals == ("driver_enabled is False",)
        assert of(facts, "toolkit", toolkit_enabled=False).refusals == ("toolkit_enabled is False",)


def of(facts: NodeFacts, subject: Subject, **data: Any) -> HostView:
    wanted = {"toolkit_enabled": True, "driver_version": OLD, **data}
    return view(facts, subject=subject, **wanted)


def test_a_reboot_keeps_the_driver_and_is_always_to_do(converged: NodeFacts) -> None:
    found = of(converged, "reboot")
    assert (found.before, found.target, found.converged) == (OLD, OLD, False)
    assert found.refusals == ()


def test_the_machine_that_gpufleet_runs_on_is_not_rebooted(converged: NodeFacts) -> None:
    assert codes(of(replace(converged, controller=True), "reboot")) == ["GF077"]
    assert "GF077" not in codes(of(replace(converged, controller=True), "driver"))


def test_a_driver_of_another_version_is_no_obstacle_to_the_toolkit(converged: NodeFacts) -> None:
    """The run keeps the driver as it is."""
    kept = of(converged, "toolkit", driver_version=NEW, toolkit_version="1.20.1").refusals
    assert kept == of(converged, "toolkit", toolkit_version="1.20.1").refusals


def test_the_toolkit_of_a_host(converged: NodeFacts) -> None:
    found = of(converged, "toolkit", toolkit_version="1.20.1")
    assert found.target == "1.20.1"
    assert found.before == found.loaded
    assert "toolkit_enabled" in of(converged, "toolkit", toolkit_enabled=False).refusals[0]
