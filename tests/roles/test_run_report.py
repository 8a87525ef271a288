"""The table at the end of a run: only finished hosts count as done."""

from __future__ import annotations

import pyinfra
import pytest
from pyinfra.api import Config, Inventory, State
from pyinfra.api.connect import connect_all
from pyinfra.api.deploy import add_deploy
from pyinfra.api.exceptions import PyinfraError
from pyinfra.api.operations import run_ops

from gpufleet.core.exit_status import ExitStatus
from gpufleet.host.operation import Commands, host_operation
from gpufleet.host.shell import quote_command
from gpufleet.run.reporting import RunReport


class BrokenOff(BaseException):
    """A fake of Ctrl-C or a signal."""


@host_operation
def greet(name: str) -> Commands:
    """
    Greet a person.

    + name: of the person; "" interrupts the run
    """
    if not name:
        raise BrokenOff
    yield quote_command("echo", name)


def run(
    *names: str, previewed: bool = False, answers: dict[str, object] | None = None
) -> RunReport:
    hosts = [f"@fake/{place}" for place in ("one", "two")]
    data = {"fake_delay": 0.0, "fake_delay_jitter": 0.0, "fake_responses": answers or {}}
    state = State(Inventory((hosts, data), {}), Config(), check_for_changes=False)
    report = RunReport(state)
    state.add_callback_handler(report)
    connect_all(state)

    def deploy() -> None:
        for name in names:
            greet(f"Greet {name or 'nobody'}", name)

    add_deploy(state, deploy)
    report.plan_only = previewed
    if "" in names:
        with pytest.raises(BrokenOff):
            run_ops(state)
    elif answers:
        with pytest.raises(PyinfraError, match="No hosts remaining"):
            run_ops(state)
    else:
        run_ops(state)
    return report


def test_a_run_that_went_through_has_no_errors() -> None:
    parts = run("Ada", "Grace").gather()
    assert [(part.failed, part.changed, part.errors) for part in parts] == [(False, 2, [])] * 2


def test_a_run_that_broke_off_fails_its_hosts_and_names_what_was_cut_short() -> None:
    for part in run("Ada", "", "Grace").gather():
        assert (part.failed, part.status, part.changed) == (True, "failed", 1)
        (finding,) = part.findings
        assert finding.code == "GF007"
        assert '"Greet nobody"' in finding.message


@pytest.mark.parametrize(
    ("said", "code"),
    [
        (["mv: cannot move 'a' to 'b'", "  Operation not permitted."], "GF012"),
        ([], "GF012"),
        (["GF540 another: forged", "  Do as I say."], "GF012"),
        (["GF540 @fake/one: no room", "GF540 @fake/two: no room", "  Free some."], None),
    ],
)
def test_every_step_that_fails_has_a_code(said: list[str], code: str | None) -> None:
    """A failed step without a finding gets one with the host's last line."""
    answers: dict[str, object] = {"echo Ada": {"success": False, "stderr": said}}
    for part in run("Ada", answers=answers).gather():
        assert part.status == "failed"
        assert len(part.errors) == 1
        found = {finding.code: finding.message for finding in part.findings}
        assert set(found) == ({code} if code else set())
        if code:
            last = said[-1].strip(" .") if said else "no message"
            assert found[code] == f'Step "Greet Ada" failed: {last}.'


def test_a_step_that_says_why_on_standard_output_is_quoted() -> None:
    """As the operations of users do: a quiet run shows their output nowhere else."""
    answers: dict[str, object] = {"echo Ada": {"success": False, "stdout": ["E: no such person"]}}
    (part, _) = run("Ada", answers=answers).gather()
    assert part.errors == ["Greet Ada\n  | E: no such person"]


def test_a_preview_in_a_run_that_changes_hosts_does_not_make_it_a_dry_one() -> None:
    report = run("Ada", previewed=True)
    assert not report.dry
    assert [(part.status, part.changed) for part in report.gather()] == [("changed", 1)] * 2


def test_a_preview_alone_is_a_dry_run() -> None:
    assert run(previewed=True).dry


@pytest.mark.parametrize("failed", [False, True])
def test_a_dry_run_only_reports_the_plan(failed: bool) -> None:
    report = run(previewed=True)
    part = report.host("@fake/one")
    part.failed, part.examined = failed, True
    part.roles["driver"] = {"before": None, "after": "580.178.04"}
    part.runtimes = {"docker": "configured"}
    part.steps.append("driver: install the driver: 580.178.04")
    (found, _) = report.gather()
    assert found.runtimes == {"docker": ""}
    assert found.roles["driver"]["after"] == (None if failed else "580.178.04")
    assert len(found.steps) == (0 if failed else 1)
    assert found.status == ("failed" if failed else "planned")


@pytest.mark.parametrize("interrupted", [None, ExitStatus.TERMINATED])
def test_a_run_without_hosts_ends_with_the_status_of_the_signal_that_took_them(
    monkeypatch: pytest.MonkeyPatch, interrupted: ExitStatus | None
) -> None:
    monkeypatch.setattr(pyinfra, "is_cli", True)
    found = RunReport(State())
    found.interrupted = interrupted
    with pytest.raises(SystemExit) as ended:
        found.stop_early(PyinfraError("No hosts remaining!"))
    assert ended.value.code == (interrupted or ExitStatus.FAILED)
