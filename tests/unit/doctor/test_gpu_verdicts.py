"""Faults of GPUs in the verdict: each error of the kernel's log, and hardware with the chain."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from rich.console import Console

from gpufleet.doctor.models import SubjectVerdict, Verdict
from gpufleet.doctor.table import all_checks
from gpufleet.doctor.text import show_verdicts
from gpufleet.facts.gpu import Listed
from gpufleet.facts.health import GpuHealth, HostHealth, KernelEvent
from gpufleet.facts.model import NodeFacts
from gpufleet.helm.findings.releases import HELM_MISSING
from gpufleet.run.report import HostReport
from gpufleet.status.models import SeenHost
from tests.unit.doctor.faults import FAULTS, RTX_5090, lost, switched, unfit
from tests.unit.doctor.machines import (
    SLOT,
    judged,
    machine,
    second_gpu,
    service,
    verdict_on,
    with_services,
)
from tests.unit.status.fleets import NOW, seen

OTHER = "0000:65:00.0"
FALLEN = "GPU is lost.  Reboot the system to recover this GPU"


def ill(*codes: int, error: str | None = "", kind: Any = "xid", **readings: Any) -> NodeFacts:
    """A machine with these errors in the kernel's log and these readings of its GPU."""
    events = tuple(
        KernelEvent(kind, code, SLOT, NOW - 60, fatal=True if kind == "sxid" else None)
        for code in codes
    )
    gpu = GpuHealth(SLOT, model="NVIDIA A100-SXM4-40GB", **readings)
    return machine(health=HostHealth((gpu,), error, events, log_since=NOW - 9000))


def causes(found: SubjectVerdict) -> set[str]:
    return {cause.check for cause in found.causes}


@pytest.mark.parametrize(
    ("codes", "check", "verdict"),
    [
        ((79,), "gpu.xid_reboot", Verdict.CRITICAL),
        ((48,), "gpu.xid_reset", Verdict.CRITICAL),
        ((46,), "gpu.xid_reset", Verdict.CRITICAL),
        ((62,), "gpu.xid_reset", Verdict.CRITICAL),
        ((64,), "gpu.xid_reset", Verdict.CRITICAL),
        ((95,), "gpu.xid_reset", Verdict.CRITICAL),
        ((109,), "gpu.xid_reset", Verdict.CRITICAL),
        ((119,), "gpu.xid_reset", Verdict.CRITICAL),
        ((140,), "gpu.xid_reset", Verdict.CRITICAL),
        ((143,), "gpu.xid_reset", Verdict.CRITICAL),
        ((54,), "gpu.xid_mechanics", Verdict.CRITICAL),
        ((74,), "gpu.xid_nvlink", Verdict.WARNING),
        ((94,), "gpu.xid_hardware", Verdict.WARNING),
        ((92,), "gpu.xid_hardware", Verdict.WARNING),
        ((157,), "gpu.xid_hardware", Verdict.WARNING),
        ((142,), "gpu.xid_support", Verdict.WARNING),
        ((167,), "gpu.xid_support", Verdict.WARNING),
        ((999,), "gpu.xid_unknown", Verdict.WARNING),
    ],
)
def test_an_error_in_the_log_is_the_cause(
    codes: tuple[int, ...], check: str, verdict: Verdict
) -> None:
    found = verdict_on(ill(*codes))
    assert (found.verdict, causes(found)) == (verdict, {check})
    (cause,) = found.causes
    assert cause.gpu == SLOT
    assert f"XID {codes[0]}" in cause.cause


@pytest.mark.parametrize("code", [13, 31, 43, 45, 63, 106])
def test_an_error_of_a_program_is_no_fault_of_the_machine(code: int) -> None:
    assert verdict_on(ill(code)).verdict is Verdict.PASS


# two faults -> the causes
PAIRS: dict[str, tuple[Callable[[], NodeFacts], set[str]]] = {
    "fell off the bus, the bus has it no more": (lambda: lost(ill(79)), {"gpu.xid_reboot"}),
    "fell off the bus, nvidia-smi says so": (
        lambda: ill(79, trouble=FALLEN), {"gpu.xid_reboot"}
    ),
    "lost without an error in the log": (lambda: ill(trouble=FALLEN), {"gpu.lost"}),
    "double bit error, needs a reset": (
        lambda: ill(48, trouble="GPU requires reset"), {"gpu.xid_reset"}
    ),
    "double bit error, row to be remapped": (
        lambda: ill(48, ecc_volatile_uncorrected=1, remap_pending=True), {"gpu.xid_reset"}
    ),
    "uncorrected error, row to be remapped": (
        lambda: ill(ecc_volatile_uncorrected=1, remap_pending=True), {"gpu.ecc_uncorrected"}
    ),
    "remapping failed, too many rows": (
        lambda: ill(remap_failed=True, remapped_uncorrected=512), {"gpu.remap_failed"}
    ),
    "an NVLink error, a link is down": (
        lambda: ill(74, nvlinks_inactive=1, fabric_state="Completed"), {"gpu.xid_nvlink"}
    ),
    "hot, slowed down": (
        lambda: ill(slowdowns=frozenset({"hw_thermal_slowdown"}), temperature_margin=0),
        {"gpu.thermal_slowdown"},
    ),
    "fabric manager failed, not in the fabric": (
        lambda: switched(ill(fabric_state="Not Started"), active="failed"), {"chain.fabric"}
    ),
    "an NVSwitch failed, not in the fabric": (
        lambda: switched(ill(11001, kind="sxid", fabric_status="Unknown Error")),
        {"host.sxid_reset"},
    ),
    "needs a reset, and docker failed": (
        lambda: FAULTS["docker failed"][0](ill(62)), {"gpu.xid_reset", "chain.runtime"}
    ),
    "module is not loaded, an old error": (
        lambda: FAULTS["not loaded"][0](ill(92)), {"chain.loaded", "gpu.xid_hardware"}
    ),
}  # fmt: skip


@pytest.mark.parametrize("pair", PAIRS)
def test_of_two_signs_the_cause_is_named(pair: str) -> None:
    make, expected = PAIRS[pair]
    assert causes(verdict_on(make())) == expected


def test_faults_of_two_gpus_are_two_causes() -> None:
    gpus = (GpuHealth(SLOT), GpuHealth(OTHER, recovery_action="Reset"))
    event = KernelEvent("xid", 48, SLOT, NOW)
    health = HostHealth(gpus, "", (event,), log_since=NOW)
    found = verdict_on(second_gpu(machine(health=health)))
    assert {(each.check, each.gpu) for each in found.causes} == {
        ("gpu.xid_reset", SLOT), ("gpu.recovery_reset", OTHER),
    }  # fmt: skip


def test_nvidia_smi_that_fails_only_in_depth() -> None:
    facts = replace(ill(error="it did not answer within 20 s"), listed=None)
    assert causes(verdict_on(facts)) == {"chain.nvml"}


def test_readings_that_nobody_can_take_are_unknown() -> None:
    facts = machine(health=HostHealth(error=None), listed=None)
    found = verdict_on(facts)
    assert (found.verdict, causes(found)) == (Verdict.UNKNOWN, {"host.readings"})
    unloaded = FAULTS["not loaded"][0](facts)
    assert causes(verdict_on(unloaded)) == {"chain.loaded"}


def test_a_log_that_cannot_be_read_is_an_info() -> None:
    found = verdict_on(machine(health=HostHealth((GpuHealth(SLOT),), error="", log_since=None)))
    assert found.verdict is Verdict.PASS
    (info,) = [each for each in found.results if each.check == "host.log"]
    assert info.verdict is Verdict.INFO


def test_a_gpu_is_compared_with_gpus_of_other_hosts() -> None:
    hosts = [
        seen(f"gpu-{number}", ill(vbios="92.00.45.00.03", ecc_mode="Enabled"))
        for number in range(4)
    ]
    odd = seen("gpu-4", ill(vbios="92.00.19.00.01", ecc_mode="Enabled"))
    *peers, found = judged(*hosts, odd).hosts
    assert {peer.verdict for peer in peers} == {Verdict.PASS}
    assert causes(found) == {"gpu.vbios"}


def shown(*hosts: SeenHost, **clusters: dict[str, Any]) -> list[str]:
    out = io.StringIO()
    show_verdicts(Console(file=out, width=400), judged(*hosts, **clusters))
    return out.getvalue().splitlines()


def test_a_fleet_with_one_fault_in_two_words() -> None:
    once, twice = ill(79), ill(79, 79)
    lines = shown(seen("gpu-1", once), seen("gpu-2", twice), seen("gpu-3", machine()))
    assert lines[0] == "CRITICAL 2 hosts (gpu-[1-2]): gpu.xid_reboot:"
    details = [line.partition(": ") for line in lines[1:3]]
    assert [host for host, _, _ in details] == ["  gpu-1", "  gpu-2"]
    assert details[0][2] != details[1][2]
    assert lines[3] == "  Next: gpufleet doctor prod.py --limit gpu-1"
    assert lines[4] == "PASS gpu-3"
    first, *_ = shown(seen("gpu-1", once), *(seen(f"gpu-{n}", twice) for n in (2, 3, 4)))
    assert first.startswith("CRITICAL 4 hosts (gpu-[1-4]): gpu.xid_reboot: ")
    assert first.endswith("; the details differ by host")


@pytest.mark.parametrize("hosts", [(), (seen("gpu-1", machine()),)], ids=["alone", "beside a host"])
def test_a_cause_with_a_remedy_is_not_answered_by_the_plan(hosts: tuple[SeenHost, ...]) -> None:
    missing = HELM_MISSING(reason="it is not in PATH", oldest="3.8")
    part = HostReport("lab", kind="cluster", status="failed", findings=[missing]).as_dict()
    text = "\n".join(shown(*hosts, lab=part))
    assert "CRITICAL lab" in text
    assert missing.remedy in text
    assert "gpufleet plan" not in text


def test_checks_come_after_checks_that_exist_and_never_after_themselves() -> None:
    after = {check.id: set(check.after) for check in all_checks()}
    assert len(after) == len(all_checks())
    assert set().union(*after.values()) <= set(after)
    while ready := [name for name, earlier in after.items() if not earlier]:
        for name in ready:
            del after[name]
        for earlier in after.values():
            earlier.difference_update(ready)
    assert after == {}, "they come after one another"


@pytest.mark.parametrize(
    ("unit", "state", "check", "verdict"),
    [
        ("failed", "In Progress", "chain.fabric", Verdict.CRITICAL),
        ("inactive", "Not Started", "chain.fabric", Verdict.CRITICAL),
        ("active", "In Progress", "gpu.fabric_in_progress", Verdict.WARNING),
        ("", "In Progress", "chain.fabric", Verdict.WARNING),
        ("", "Not Started", "chain.fabric", Verdict.CRITICAL),
    ],
)
def test_a_b200_that_waits_for_its_fabric(
    unit: str, state: str, check: str, verdict: Verdict
) -> None:
    """The NVSwitches of a B200 are no NVIDIA devices on the bus."""
    facts = ill(fabric_state=state)
    if unit:
        facts = with_services(facts, service("nvidia-fabricmanager.service", unit))
    found = verdict_on(facts)
    assert (causes(found), found.verdict) == ({check}, verdict)


@pytest.mark.parametrize(("unit", "state"), [("", "Completed"), ("failed", None)])
def test_a_host_that_needs_no_fabric_manager(unit: str, state: str | None) -> None:
    """A GB200, and a host without an NVSwitch that has one installed."""
    facts = ill(fabric_state=state)
    if unit:
        facts = with_services(facts, service("nvidia-fabricmanager.service", unit))
    assert verdict_on(facts).verdict is Verdict.PASS


def test_a_driver_that_lists_all_gpus_is_not_judged_by_the_catalog() -> None:
    facts = replace(unfit(RTX_5090, "NVIDIA")(machine()), listed=Listed(1))
    assert "chain.fits" not in causes(verdict_on(facts))
