"""A host whose layout an upgrade changes: its plan, refusals, way back and files."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from gpu_host import SLOTS, applied_host, blockers, gpu_host, gpu_plan, state_of

from gpufleet.facts.gpu import LAYOUT_FILE, Listed
from gpufleet.facts.model import GpuProcess, ManagedFile, NodeFacts
from gpufleet.node.catalog import load_catalog
from gpufleet.node.settings import load_node_settings
from gpufleet.role.place import NO_PLACE
from gpufleet.upgrade.look import LookedHost, view_of
from gpufleet.upgrade.models import HostView
from gpufleet.upgrade.subjects import data_of

pytestmark = pytest.mark.claim(
    "A change of MIG or ECC on hosts in use is planned with its way back, and refused before a "
    "host is touched if it cannot work.",
    level=1,
)

WHOLE, OTHER = state_of(SLOTS[0]), state_of(SLOTS[1])
DIVIDED = state_of(SLOTS[0], ("3g.40gb", "3g.40gb"))
LAYOUT: dict[str, Any] = {"gpu_mig": "3g.40gb:2"}
SMALLER: dict[str, Any] = {"gpu_mig": "1g.10gb:7"}
TRAIN = GpuProcess(9, "train", ("/dev/nvidia0", "/dev/nvidia-uvm"))


def view(facts: NodeFacts, version: str = "", **data: Any) -> HostView:
    own = {"toolkit_enabled": False, "driver_hold": True, "driver_version": "580.159.03"}
    settings, problems = load_node_settings({**own, **data, **without_subject(version)})
    assert settings, problems
    listed = facts.listed.gpus if facts.listed else 0
    seen = LookedHost("h", settings, facts, load_catalog(), facts.clock, {}, NO_PLACE, listed)
    return view_of(seen, "", "sharing")


def with_file(words: str) -> NodeFacts:
    """A host whose users wrote the file of the wanted layout."""
    facts = gpu_host(WHOLE)
    file = ManagedFile(LAYOUT_FILE, f"{SLOTS[0]} {words}\n")
    return replace(facts, files={**facts.files, LAYOUT_FILE: file})


def without_subject(version: str) -> dict[str, Any]:
    return {k: v for k, v in data_of("sharing", version).items() if k != "upgrade_subject"}


def codes(found: HostView) -> list[str]:
    """The codes without GF058: the driver of these hosts lacks files."""
    assert not any("gpu: " in reason for reason in found.refusals), "steps of the run itself"
    return [code for reason in found.refusals if (code := reason.split()[0]) != "GF058"]


def test_the_plan_has_the_layout_before_and_after() -> None:
    found = view(gpu_host(WHOLE, OTHER), **LAYOUT)
    assert (found.before, found.target) == ("0-1: mig=off", "0-1: mig=3g.40gb:2")
    assert (found.converged, codes(found)) == (False, [])
    one = view(gpu_host(WHOLE, OTHER), gpu_mig={1: "1g.10gb:7"}, gpu_ecc=False)
    assert one.before == "0: stays=off ecc=1; 1: mig=off ecc=1"
    assert one.target == "0: stays=off ecc=0; 1: mig=1g.10gb:7 ecc=0"


def test_a_host_with_the_wanted_layout_is_passed() -> None:
    done = applied_host(gpu_host(WHOLE), DIVIDED, **LAYOUT)
    assert view(done, **LAYOUT).converged
    assert view(gpu_host(DIVIDED), **LAYOUT).converged  # gpufleet apply writes its files
    assert view(gpu_host(WHOLE), gpu_ecc=True).converged
    limited = view(done, **LAYOUT, gpu_power_limit=300)
    assert limited.converged, "a limit needs no drained host"


def test_work_is_waited_for() -> None:
    found = view(gpu_host(WHOLE, gpu_processes=(TRAIN,)), **LAYOUT)
    assert (codes(found), len(found.work)) == ([], 1)
    assert not codes(view(gpu_host(WHOLE, gpu_pods=2), **LAYOUT))


@pytest.mark.parametrize(
    ("facts", "data", "code"),
    [
        (gpu_host(WHOLE), {"gpu_mig": "4g.40gb:2"}, "GF481"),
        (gpu_host(WHOLE), {"gpu_mig": "1g.5gb:7"}, "GF481"),
        (gpu_host(WHOLE, operator_driver=True), LAYOUT, "GF487"),
        (gpu_host(state_of(SLOTS[0], ecc=None)), {"gpu_ecc": True}, "GF486"),
        (replace(gpu_host(WHOLE), listed=Listed(1)), LAYOUT, "GF287"),
        (gpu_host(state_of(SLOTS[0], ("1c.3g.40gb", "2c.3g.40gb"))), LAYOUT, "GF287"),
        (gpu_host(state_of(SLOTS[0], ("1g.99gb",))), LAYOUT, "GF481"),  # no way back
        (with_file("power=$(id)"), {**LAYOUT, "gpu_power_limit": 300}, "GF287"),
        (with_file("clocks=\x1b[2J mig=off"), {**LAYOUT, "gpu_clocks": 900}, "GF287"),
    ],
)
def test_what_cannot_work_is_refused(facts: NodeFacts, data: dict[str, Any], code: str) -> None:
    assert code in codes(view(facts, **data))


def test_a_host_without_a_key_is_left_out_on_purpose() -> None:
    assert view(gpu_host(WHOLE)).refusals == ("neither gpu_mig nor gpu_ecc is set",)
    assert view(gpu_host(WHOLE), gpu_power_limit=300).refusals == view(gpu_host(WHOLE)).refusals


def test_a_drained_host_is_reset_without_a_permission_that_lasts() -> None:
    facts = gpu_host(WHOLE)
    target = view(facts, **LAYOUT).target
    assert [each.code for each in blockers(facts, **LAYOUT)] == ["GF489"]
    assert not blockers(facts, **LAYOUT, gpu_lines=target)
    plan = gpu_plan(facts, **LAYOUT, gpu_lines=target)
    assert (plan.resets, plan.drained) == ((0,), True)
    assert not gpu_plan(facts, **LAYOUT, gpu_allow_reset=True).drained
    busy = gpu_host(WHOLE, gpu_processes=(TRAIN,))
    assert [each.code for each in blockers(busy, **LAYOUT, gpu_lines=target)] == ["GF488"]


@pytest.mark.parametrize(
    "data",
    [
        {"gpu_mig": {0: ["1g.10gb", "3g.40gb"], "all": "off"}, "gpu_power_limit": "default"},
        {"gpu_mig": "1g.10gb:7", "gpu_ecc": True, "gpu_clocks": [300, 1400]},
        {"gpu_ecc": False, "gpu_allow_reset": True, "gpu_compute_mode": "exclusive-process"},
    ],
)
def test_the_change_writes_the_files_that_apply_would_write(data: dict[str, Any]) -> None:
    facts = gpu_host(WHOLE, OTHER)
    permission = {"gpu_allow_reset": True} if "gpu_allow_reset" not in data else {}
    target = view(facts, **data).target
    by_apply = gpu_plan(facts, **{**data, **permission})
    by_upgrade = gpu_plan(facts, **{**data, **permission}, gpu_lines=target)
    assert by_upgrade.lines == by_apply.lines
    assert by_upgrade.wanted_files == by_apply.wanted_files
    assert by_upgrade.after == by_apply.after


def test_the_way_back_is_the_layout_that_was_there() -> None:
    """Also with other keys in the inventory now, and for settings that gpufleet did not make."""
    earlier = {"gpu_mig": "3g.40gb:2", "gpu_power_limit": 300, "gpu_clocks": [300, 1400]}
    limited = replace(DIVIDED, power=300.0)
    first = applied_host(gpu_host(WHOLE), limited, **earlier, gpu_allow_reset=True)
    wanted = {"gpu_mig": "1g.10gb:7", "gpu_ecc": False, "gpu_power_limit": 350}
    before = view(first, **wanted).before
    assert before == "0: mig=3g.40gb:2 ecc=1 power=300 clocks=300,1400"
    small = state_of(SLOTS[0], ("1g.10gb",) * 7, ecc=False, pending_ecc=False, power=350.0)
    changed = applied_host(first, small, **wanted, gpu_allow_reset=True)
    back = gpu_plan(changed, **wanted, gpu_lines=before)
    assert back.lines == {SLOTS[0]: "mig=3g.40gb,3g.40gb ecc=1 power=300 clocks=300,1400"}
    assert [*back.changes[0].differs] == ["mig", "ecc", "power"]
    found = view(changed, before, **wanted)
    assert (found.target, found.before) == (
        before,
        "0: mig=1g.10gb:7 ecc=0 power=350 clocks=default",
    )
    mixed = gpu_host(state_of(SLOTS[0], ecc=False, pending_ecc=False), OTHER)
    assert view(mixed, gpu_ecc=True).before == "0: stays=off ecc=0; 1: stays=off ecc=1"


def test_a_changed_host_is_found_as_the_target_says() -> None:
    """A roll-back begins only on hosts that still have what the run made."""
    target = view(gpu_host(WHOLE), **LAYOUT).target
    done = applied_host(gpu_host(WHOLE), DIVIDED, **LAYOUT, gpu_lines=target)
    assert view(done, **LAYOUT).before == target
    assert view(done, **SMALLER).before == target


def test_a_layout_that_the_next_boot_makes_is_not_there_yet() -> None:
    """A killed process may have written only the file."""
    facts = gpu_host(WHOLE)
    target = view(facts, **LAYOUT).target
    written = next(f for f in gpu_plan(facts, **LAYOUT, gpu_lines=target).wanted_files
                   if f.path == LAYOUT_FILE)  # fmt: skip
    files = {**facts.files, LAYOUT_FILE: ManagedFile(LAYOUT_FILE, str(written.content))}
    found = view(replace(facts, files=files), "0: mig=off", **LAYOUT)
    assert (found.before, found.loaded) == ("0: mig=off", None)
    assert view(facts, "0: mig=off", **LAYOUT).loaded == "0: mig=off"
