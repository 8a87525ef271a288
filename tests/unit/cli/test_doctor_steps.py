"""The next steps that `gpufleet doctor` prints: each repairs its cause, and can be copied."""

from __future__ import annotations

import io
import re
from dataclasses import replace

import pytest
from rich.console import Console

from gpufleet.core.entries import PackageManager
from gpufleet.doctor.export import next_steps, step_command
from gpufleet.doctor.models import CheckOutcome, DoctorCheck, SubjectVerdict, Verdict, load_steps
from gpufleet.doctor.table import all_checks
from gpufleet.doctor.text import show_verdicts
from gpufleet.driver.files import MODPROBE_FILE
from tests.unit.doctor.faults import FAULTS
from tests.unit.doctor.machines import judged, machine, verdict_on
from tests.unit.status.fleets import seen

UNFILLED = re.compile(r"\{\w*\}|\b(?:UNIT|GPU|HOST|POD|NAMESPACE|SERVICE)\b|''")
FINISHES: dict[PackageManager, str] = {
    "apt": "dpkg --configure -a",
    "yum": "yum-complete-transaction",
}
KNOWN = {
    "path": "/etc/cdi/old.yaml",
    "gpu": "0000:17:00.0",
    "unit": "docker.service",
    "place": "gpu/plugin-x",
}


def shown(fault: str) -> str:
    host = seen("gpu-01", FAULTS[fault][0](machine()), toolkit_enabled=True)
    out = io.StringIO()
    show_verdicts(Console(file=out, width=300), judged(host))
    return out.getvalue()


def test_an_undefined_default_runtime_is_repaired_before_its_unit_is_started() -> None:
    text = shown("docker's default runtime nvidia is not defined")
    assert "Next: gpufleet apply prod.py --limit gpu-01\n" in text
    assert "Follows from it: chain.runtime\n" in text
    assert "--fix" not in text


def test_an_apply_that_leaves_the_default_runtime_is_no_step() -> None:
    text = shown("docker's default runtime is not defined")
    assert "(GF441)" in text
    assert "gpufleet apply prod.py" not in text


def test_an_invalid_file_of_the_user_is_not_repaired_by_an_apply() -> None:
    text = shown("invalid daemon.json")
    assert "chain.config: " in text
    assert "gpufleet apply prod.py" not in text


def test_a_driver_on_disk_beside_nouveau_needs_only_a_reboot() -> None:
    taken = FAULTS["nouveau has the GPU"][0](machine())
    done = replace(
        taken, provenance=taken.provenance.model_copy(update={"files": {MODPROBE_FILE: ""}})
    )
    for facts, steps in ((taken, ["apply", "reboot"]), (done, ["reboot"])):
        (cause,) = [each for each in verdict_on(facts).causes if each.check == "chain.nouveau"]
        assert [name for name, _ in next_steps(cause)] == steps


def test_a_failed_runtime_is_read_whatever_a_run_writes() -> None:
    assert "Next (on the host, as root): journalctl -b -n 50 -u docker.service\n" in shown(
        "docker failed"
    )


def test_an_interrupted_transaction_is_finished_by_the_package_manager_of_the_host() -> None:
    fault = FAULTS["packages half installed"][0]
    for manager, command in FINISHES.items():
        found = verdict_on(replace(fault(machine()), package_manager=manager))
        cause = next(each for each in found.causes if each.check == "host.packages")
        ((_, step),) = next_steps(cause)
        assert (step.command.split(" && ")[0], step.runs_on) == (command, "host")


def commands(check: str, steps: tuple[str, ...], **known: str) -> list[str]:
    result = CheckOutcome(check, Verdict.CRITICAL, steps=steps, **known)
    found = SubjectVerdict("gpu-01", (result,))
    return [step_command(step, "prod.py", found, result) for _, step in next_steps(result)]


@pytest.mark.parametrize("known", [{}, KNOWN])
@pytest.mark.parametrize("check", all_checks(), ids=lambda check: check.id)
def test_no_step_lacks_a_name(check: DoctorCheck, known: dict[str, str]) -> None:
    for command in commands(check.id, check.steps, **known):
        assert not UNFILLED.search(command)


def test_every_step_can_be_filled() -> None:
    assert len(commands("chain.runtime", tuple(load_steps().steps), **KNOWN)) == len(
        load_steps().steps
    )


@pytest.mark.parametrize("fault", FAULTS)
def test_each_cause_has_a_step_that_can_be_copied(fault: str) -> None:
    found = verdict_on(FAULTS[fault][0](machine()))
    for cause in found.causes:
        assert commands(cause.check, cause.steps, unit=cause.unit, gpu=cause.gpu)


@pytest.mark.parametrize(
    ("fault", "unit"),
    [("two cgroup drivers", "containerd"), ("k3s did not add the runtime", "k3s-agent")],
)
def test_a_finding_about_a_runtime_names_its_unit(fault: str, unit: str) -> None:
    assert f": systemctl restart {unit}.service\n" in shown(fault)
