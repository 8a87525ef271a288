"""Verdicts that reviews found wrong: false alarms, and outputs that others refuse."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gpufleet.doctor.export import doctor_metrics_text, next_steps, step_command
from gpufleet.doctor.models import SubjectVerdict
from gpufleet.facts.gpu import GpuState, Listed
from gpufleet.facts.health import GpuHealth, HostHealth, KernelEvent
from gpufleet.facts.model import GpuProcess
from tests.unit.doctor.machines import SLOT, judged, machine, verdict_on
from tests.unit.status.fleets import NOW, seen

MODEL = "Tesla T4"


def with_health(*gpus: GpuHealth, **changes: Any) -> Any:
    return machine(health=HostHealth(gpus, **{"error": "", "read_at": NOW, **changes}))


def verdict_among_peers(own: dict[str, Any], others: dict[str, Any]) -> SubjectVerdict:
    """The verdict on a host with one GPU, beside three hosts."""
    hosts = [
        seen(f"gpu-{number}", with_health(GpuHealth(SLOT, model=MODEL, **values)))
        for number, values in enumerate((own, others, others, others))
    ]
    return judged(*hosts).hosts[0]


def failed(found: SubjectVerdict, prefix: str = "gpu.") -> dict[str, str]:
    return {
        each.check: each.verdict.value
        for each in found.results
        if each.verdict.fails and each.check.startswith(prefix)
    }


def test_each_series_is_written_once() -> None:
    """node_exporter refuses the whole file otherwise."""
    events = tuple(
        KernelEvent("sxid", 12020, f"0000:c{number}:00.0", NOW, fatal=True) for number in (1, 2)
    )
    facts = with_health(GpuHealth(SLOT, model=MODEL), events=events, log_since=1)
    text = doctor_metrics_text(judged(seen("gpu-07", facts)), NOW)
    series = [line.rpartition(" ")[0] for line in text.splitlines() if line[0] != "#"]
    assert any("host.sxid_reboot" in each for each in series)
    assert len(series) == len(set(series))


def test_less_memory_by_another_driver_is_no_fault() -> None:
    """A T4 has 15109 MiB with driver 470, and 15360 MiB with newer ones."""
    assert not failed(verdict_among_peers({"memory_mib": 15109}, {"memory_mib": 15360}))
    assert failed(verdict_among_peers({"memory_mib": 14336}, {"memory_mib": 15360}))


def test_nvlinks_are_compared_on_their_host_alone() -> None:
    """A machine with one GPU, or without bridges, has none."""
    none, all_of_them = {"nvlinks_active": 0, "nvlinks_inactive": 6}, {"nvlinks_active": 6}
    assert not failed(verdict_among_peers(none, all_of_them))
    gpus = [
        GpuHealth(f"0000:{slot}:00.0", model=MODEL, nvlinks_active=links)
        for slot, links in (("17", 4), ("18", 6), ("19", 6))
    ]
    assert failed(verdict_on(with_health(*gpus))) == {"gpu.nvlinks_peers": "CRITICAL"}


@pytest.mark.parametrize(
    ("action", "verdict", "said"),
    [("None", "WARNING", "now asks for no recovery"),
     ("Reset", "CRITICAL", ""),
     (None, "CRITICAL", "stays until the driver is loaded again")],
)  # fmt: skip
def test_error_says_when_its_verdict_ends(action: str | None, verdict: str, said: str) -> None:
    """A driver before 560 does not say that a GPU was reset."""
    gpu = GpuHealth(SLOT, model=MODEL, recovery_action=action)
    facts = with_health(gpu, events=(KernelEvent("xid", 119, SLOT, NOW),), log_since=1)
    found = verdict_on(facts)
    assert failed(found)["gpu.xid_reset"] == verdict
    assert said in found.causes[0].cause


def test_unread_readings_follow_from_the_lost_gpu() -> None:
    error = "Unable to determine the device handle for gpu 0000:17:00.0: GPU is lost"
    found = verdict_on(with_health(GpuHealth(SLOT, trouble="GPU is lost"), error=error))
    assert [each.check for each in found.causes] == ["gpu.lost"]


@pytest.mark.parametrize(
    ("work", "codes"),
    [((GpuProcess(812, "train.py", ("/dev/nvidia0",)),), {"GF488", "GF489"}), ((), {"GF489"})],
)
def test_a_layout_that_waits_for_work_is_no_fault(
    work: tuple[GpuProcess, ...], codes: set[str]
) -> None:
    whole = Listed(1, states=(GpuState(SLOT, mig=False, pending_mig=False),))
    facts = machine(listed=whole, gpu_processes=work)
    found = verdict_on(facts, gpu_mig="3g.40gb:2")
    assert {each.code for each in found.results if each.check == "host.plan"} == codes
    assert failed(found, "host.") == {}


def test_commands_for_this_machine_need_no_ssh() -> None:
    found = replace(verdict_on(machine(modules={}, listed=None)), name="@local", kubelet=True)
    cause = next(each for each in found.causes if "reboot" in each.steps)
    commands = {
        name: step_command(step, "@local", found, cause) for name, step in next_steps(cause)
    }
    assert commands["reboot"] == (
        'kubectl drain "$(hostname)" --ignore-daemonsets --delete-emptydir-data'
        " && sudo systemctl reboot"
    )


def test_an_nvswitch_is_reset_with_all_gpus() -> None:
    """nvidia-smi resets NVSwitches only together with all of their GPUs."""
    event = KernelEvent("sxid", 11001, "0000:c1:00.0", NOW, fatal=True)
    found = verdict_on(with_health(GpuHealth(SLOT), events=(event,), log_since=1))
    (cause,) = found.causes
    (_, step), *_ = next_steps(cause)
    assert step_command(step, "prod.py", found, cause) == "nvidia-smi --gpu-reset"
