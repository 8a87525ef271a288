"""The checks on GPUs: healthy ones fail none, and each fault fails its own."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gpufleet.doctor.hardware import HardwareProblem, judge_gpu_health, load_hardware
from gpufleet.facts.health import GpuHealth, HostHealth, KernelEvent
from gpufleet.monitoring.xids import load_sxids, load_xids

SLOT = "0000:18:00.0"
H100 = GpuHealth(
    slot=SLOT, model="NVIDIA H100 80GB HBM3", uuid="GPU-1", vbios="96.00.89.00.01",
    persistence="Enabled", mig_mode="Disabled", mig_pending="Disabled", ecc_mode="Enabled",
    ecc_pending="Enabled", ecc_volatile_corrected=0, ecc_volatile_uncorrected=0,
    sram_threshold_exceeded=False,
    memory_unrepairable=False, channel_repair_pending=False, tpc_repair_pending=False,
    remapped_uncorrected=1, remap_pending=False, remap_failed=False,
    remap_banks_exhausted=0, recovery_action="None", slowdowns=frozenset(), temperature=31,
    temperature_margin=57, memory_temperature=42, power_limit=700, power_limit_default=700,
    utilization=0, performance_state=0, pcie_generation=5, pcie_generation_max=5, pcie_width=16,
    pcie_width_max=16, memory_mib=81559, fabric_state="Completed",
    fabric_status="Success", fabric_bandwidth="Full", fabric_route_unhealthy=False,
    nvlinks_active=18, nvlinks_inactive=0, nvlink_recoveries=0,
)  # fmt: skip
A100 = replace(
    H100, model="NVIDIA A100-SXM4-80GB", recovery_action=None, reset_required=False,
    sram_threshold_exceeded=None, memory_unrepairable=None, channel_repair_pending=None,
    tpc_repair_pending=None, pcie_generation=4, pcie_generation_max=4, power_limit=400,
    power_limit_default=400, fabric_state=None, fabric_status=None, fabric_bandwidth=None,
    fabric_route_unhealthy=None, nvlinks_active=12, memory_temperature_margin=53,
)  # fmt: skip
T4 = GpuHealth(
    slot=SLOT, model="Tesla T4", persistence="Disabled", ecc_mode="Enabled", ecc_pending="Enabled",
    ecc_volatile_corrected=0, ecc_volatile_uncorrected=0, retired_pages=1, retirement_pending=False,
    slowdowns=frozenset(), temperature=38, temperature_margin=55, power_limit=70,
    power_limit_default=70, utilization=0, performance_state=8, pcie_generation=1,
    pcie_generation_max=3, pcie_width=16, pcie_width_max=16, memory_mib=15109,
)  # fmt: skip
BUSY: dict[str, Any] = {
    "utilization": 100, "temperature": 70, "temperature_margin": 18, "performance_state": 0,
    "slowdowns": frozenset({"sw_power_cap"}), "ecc_volatile_corrected": 100,
}  # fmt: skip
FAULTS: dict[str, tuple[GpuHealth, dict[str, Any]]] = {
    "gpu.lost": (H100, {"trouble": "GPU is lost.  Reboot the system to recover this GPU"}),
    "gpu.needs_reset": (H100, {"trouble": "GPU requires reset"}),
    "gpu.unreadable": (H100, {"trouble": "Unknown Error"}),
    "gpu.recovery_reset": (H100, {"recovery_action": "Reset"}),
    "gpu.recovery_reboot": (H100, {"recovery_action": "Reboot"}),
    "gpu.recovery_drain": (H100, {"recovery_action": "Drain and Reset"}),
    "gpu.reset_required": (A100, {"reset_required": True}),
    "gpu.ecc_uncorrected": (A100, {"ecc_volatile_uncorrected": 1}),
    "gpu.ecc_corrected": (A100, {"ecc_volatile_corrected": 30_000_000}),
    "gpu.sram_threshold": (H100, {"sram_threshold_exceeded": True}),
    "gpu.memory_unrepairable": (H100, {"memory_unrepairable": True}),
    "gpu.channel_repair": (H100, {"channel_repair_pending": True}),
    "gpu.tpc_repair": (H100, {"tpc_repair_pending": True}),
    "gpu.remap_pending": (A100, {"remap_pending": True}),
    "gpu.remap_failed": (A100, {"remap_failed": True}),
    "gpu.remapped_rows": (A100, {"remapped_uncorrected": 512}),
    "gpu.remap_spare": (A100, {"remap_banks_exhausted": 1}),
    "gpu.retirement_pending": (T4, {"retirement_pending": True}),
    "gpu.retired_pages": (T4, {"retired_pages": 63}),
    "gpu.memory_size": (H100, {"memory_mib": 71000}),
    "gpu.inforom": (T4, {"inforom_corrupted": True}),
    "gpu.ecc_pending": (A100, {"ecc_pending": "Disabled"}),
    "gpu.ecc_mode": (A100, {"ecc_mode": "Disabled", "ecc_pending": "Disabled"}),
    "gpu.mig_pending": (A100, {"mig_pending": "Enabled"}),
    "gpu.vbios": (H100, {"vbios": "96.00.30.00.01"}),
    "gpu.thermal_slowdown": (T4, {"slowdowns": frozenset({"hw_thermal_slowdown", "hw_slowdown"})}),
    "gpu.software_slowdown": (H100, {"slowdowns": frozenset({"sw_thermal_slowdown"})}),
    "gpu.power_brake": (H100, {"slowdowns": frozenset({"hw_power_brake_slowdown"})}),
    "gpu.temperature": (T4, {"temperature_margin": 4}),
    "gpu.memory_temperature": (A100, {"memory_temperature_margin": 0}),
    "gpu.power_limit": (H100, {"power_limit": 500}),
    "gpu.pcie_width": (H100, {**BUSY, "pcie_width": 8}),
    "gpu.pcie_generation": (T4, BUSY),
    "gpu.pcie_width_peers": (H100, {"pcie_width_max": 8, "pcie_width": 8}),
    "gpu.pcie_generation_peers": (H100, {"pcie_generation_max": 4, "pcie_generation": 4}),
    "gpu.nvlinks_down": (H100, {"nvlinks_inactive": 1}),
    "gpu.nvlinks_peers": (A100, {"nvlinks_active": 11, "nvlinks_inactive": 1}),
    "gpu.nvlink_recoveries": (A100, {"nvlink_recoveries": 1}),
    "gpu.fabric_not_started": (H100, {"fabric_state": "Not Started", "fabric_status": None}),
    "gpu.fabric_in_progress": (H100, {"fabric_state": "In Progress", "fabric_status": None}),
    "gpu.fabric_failed": (H100, {"fabric_status": "Insufficient Resources"}),
    "gpu.fabric_bandwidth": (H100, {"fabric_bandwidth": "Degraded"}),
    "gpu.fabric_route": (H100, {"fabric_route_unhealthy": True}),
}


def node(gpu: GpuHealth, count: int = 8, **changes: Any) -> tuple[GpuHealth, ...]:
    """A host's GPUs, of which the first has `changes`."""
    others = (replace(gpu, slot=f"0000:{0x20 + i:02x}:00.0") for i in range(count - 1))
    return (replace(gpu, **changes), *others)


def judge(
    *gpus: GpuHealth, events: tuple[KernelEvent, ...] = (), peers: tuple[GpuHealth, ...] = ()
) -> list[HardwareProblem]:
    return list(judge_gpu_health(HostHealth(gpus=gpus, error="", events=events), peers))


def failed(*gpus: GpuHealth, **more: Any) -> list[tuple[str, str]]:
    return [(problem.check, problem.slot) for problem in judge(*gpus, **more)]


def xid(code: int, text: str = "", **more: Any) -> KernelEvent:
    return KernelEvent("xid", code, SLOT, text=text, **more)


def sxid(code: int, *, fatal: bool) -> KernelEvent:
    return KernelEvent("sxid", code, "0000:c1:00.0", fatal=fatal)


@pytest.mark.parametrize("busy", [{}, BUSY], ids=["idle", "busy"])
@pytest.mark.parametrize("gpu", [H100, A100], ids=lambda gpu: str(gpu.model))
def test_a_healthy_gpu_fails_nothing(gpu: GpuHealth, busy: dict[str, Any]) -> None:
    assert failed(*node(gpu, **busy)) == []
    assert failed(replace(gpu, **busy)) == []


@pytest.mark.parametrize(
    "gpu",
    [
        T4,
        replace(T4, **{**BUSY, "pcie_generation": 3}),
        GpuHealth(SLOT),  # nothing is available
        replace(A100, mig_mode="Enabled", mig_pending="Enabled", utilization=None,
                remap_pending=None, remap_failed=None),
        replace(H100, fabric_state=None, fabric_status=None, fabric_bandwidth=None,
                nvlinks_active=12, nvlinks_inactive=6),  # H100 NVL, bridged
        replace(H100, nvlinks_active=0, nvlinks_inactive=18),  # the only one of a virtual machine
    ],
    ids=["idle-t4", "busy-t4", "unknown", "mig", "bridged", "partition"],
)  # fmt: skip
def test_other_healthy_gpus(gpu: GpuHealth) -> None:
    assert failed(gpu) == []
    assert failed(*node(gpu)) == []


def test_there_is_a_fault_for_each_check() -> None:
    assert list(FAULTS) == [check.id for check in load_hardware().checks]


@pytest.mark.parametrize("check", FAULTS)
def test_a_fault_fails_its_check(check: str) -> None:
    gpu, changes = FAULTS[check]
    (problem,) = judge(*node(gpu, **changes))
    assert (problem.check, problem.slot) == (check, SLOT)
    assert problem.read
    assert problem.steps


@pytest.mark.parametrize(
    ("check", "read"),
    [
        ("gpu.remap_failed", "yes"),
        ("gpu.ecc_corrected", "30000000"),
        ("gpu.power_limit", "500, power_limit_default is 700"),
        ("gpu.nvlinks_peers", "11, and 12 on its peers"),
        ("gpu.unreadable", "Unknown Error"),
        ("gpu.power_brake", "hw_power_brake_slowdown"),
    ],
)
def test_what_was_read(check: str, read: str) -> None:
    gpu, changes = FAULTS[check]
    assert [problem.read for problem in judge(*node(gpu, **changes))] == [read]


@pytest.mark.parametrize("check", ["gpu.power_limit", "gpu.pcie_width", "gpu.pcie_generation"])
def test_what_all_gpus_of_a_model_share_is_meant(check: str) -> None:
    gpu, changes = FAULTS[check]
    assert failed(*node(replace(gpu, **changes))) == []
    assert failed(replace(gpu, **changes)) == [(check, SLOT)], "nothing to compare with"


def test_an_idle_gpu_may_use_a_slower_link() -> None:
    assert failed(replace(H100, pcie_generation=1, pcie_width=8)) == []


def test_peers_are_gpus_of_the_same_model_on_other_hosts() -> None:
    old = replace(H100, vbios="96.00.30.00.01")
    assert failed(old) == []
    assert failed(old, peers=(H100,)) == [], "two differ, and nobody knows which is right"
    assert failed(old, peers=(H100, H100)) == [("gpu.vbios", SLOT)]
    assert failed(old, peers=(H100, H100, old, old)) == []
    assert failed(old, peers=(A100, A100, A100)) == []


def judged_code(code: int) -> dict[str, str]:
    return {each.check: each.severity for each in judge(events=(xid(code),))}


def test_an_error_of_a_program_fails_nothing() -> None:
    programs = next(each for each in load_xids().classes if each.name == "application")
    assert not any(judged_code(code) for code in (*programs.codes, 63, 68, 154, 162))


@pytest.mark.parametrize(
    ("text", "check"),
    [
        ("RLW_REMAP Fatal XC0 i0 Link 00 (0x00000004 0x00000040)", "gpu.xid_reset"),
        ("pid=7, name=x, RLW_RXPIPE Nonfatal XC0 i0 Link 13 (0x0409a0c2 0x8)", "gpu.xid_hardware"),
        ("in another form", "gpu.xid_nvlink"),
    ],
)
def test_an_nvlink_error_of_blackwell_is_as_its_line_says(text: str, check: str) -> None:
    assert failed(events=(xid(145, text),)) == [(check, SLOT)]


def test_a_gpu_that_needs_no_recovery_any_more_is_a_warning() -> None:
    events = (xid(119),)
    assert [each.severity for each in judge(*node(H100), events=events)] == ["warning"]
    assert [each.severity for each in judge(*node(A100), events=events)] == ["critical"]


@pytest.mark.parametrize(
    ("actions", "checks"),
    [
        (["Node Reboot Required"], ["gpu.recovery_reboot"]),
        (["GPU Reset Required", "None"], []),
        (["None", "Drain P2P"], ["gpu.recovery_drain"]),
    ],
)
def test_the_last_action_in_the_log_counts(actions: list[str], checks: list[str]) -> None:
    events = tuple(
        xid(154, f"GPU recovery action changed from 0x0 (None) to 0x2 ({action})")
        for action in actions
    )
    assert [check for check, _ in failed(A100, events=events)] == checks


def test_errors_of_a_gpu_are_one_problem() -> None:
    events = (xid(119, time=1_795_928_000), xid(119), xid(62, time=1_795_928_400), xid(79))
    reset, reboot = judge(events=events)
    assert (reset.check, reboot.check) == ("gpu.xid_reset", "gpu.xid_reboot")
    assert reset.read.startswith("XID 119 x2 (")
    assert "XID 62 (" in reset.read
    assert reset.read.endswith("; last at 2026-11-29 05:00 UTC")
    assert reboot.read == "XID 79 (the GPU fell off the bus)"


@pytest.mark.parametrize(("code", "counts"), [(92, False), (119, True), (79, True)])
def test_an_old_error_of_a_gpu_that_works_is_past(code: int, counts: bool) -> None:
    old, new = (xid(code, time=1_795_000_000 - 86_400 * days) for days in (8, 6))
    for event, expected in ((old, counts), (new, True)):
        health = HostHealth(events=(event,), read_at=1_795_000_000)
        assert bool(judge_gpu_health(health, ())) is expected


@pytest.mark.parametrize(
    ("event", "check"),
    [
        (sxid(20034, fatal=True), "host.sxid_reset"),
        (sxid(19084, fatal=False), "host.sxid_reset"),
        (sxid(22003, fatal=True), "host.sxid_reboot"),
        (sxid(20012, fatal=False), "host.sxid_hardware"),
        (sxid(10004, fatal=False), "host.sxid_hardware"),
        (sxid(99999, fatal=True), "host.sxid_reset"),
        (sxid(11012, fatal=False), None),
        (sxid(99999, fatal=False), None),
    ],
)
def test_an_error_of_an_nvswitch(event: KernelEvent, check: str | None) -> None:
    assert failed(events=(event,)) == ([(check, "0000:c1:00.0")] if check else [])


def test_each_sxid_is_in_one_group_that_a_check_reads() -> None:
    groups = load_sxids().groups
    codes = [code for group in groups for code in group.codes]
    assert len(codes) == len(set(codes))
    read = {now for check in load_hardware().events for now in check.now}
    assert {group.now for group in groups} - {"IGNORE"} <= read


def test_each_resolution_of_an_xid_is_read_or_of_no_concern() -> None:
    read = {now for check in load_hardware().events for now in check.now}
    quiet = {"", "IGNORE", "RESTART_APP", "CHECK_UVM", "UPDATE_SWFW", "WORKFLOW_XID_45", "XID_154"}
    assert {each.now for each in load_xids().xids.values()} == (read | quiet) - {"CHECK_COOLING"}
