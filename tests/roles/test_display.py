"""The progress of a run, by the callbacks of pyinfra on fake hosts."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import click
import pyinfra
import pytest
from pyinfra.api import Config, Host, Inventory, State
from pyinfra.api.connect import connect_all
from pyinfra.api.deploy import add_deploy
from pyinfra.api.operations import run_ops
from pyinfra.api.state import StateStage

from gpufleet.core.live import QUIET, LiveProgress
from gpufleet.core.progress import RunProgress
from gpufleet.host.operation import Commands, host_operation
from gpufleet.host.shell import quote_command
from gpufleet.run.display import Display, Quiet
from gpufleet.run.invocation import Invocation
from gpufleet.run.reporting import RunReport

FAKE = {"fake_delay": 0.0, "fake_delay_jitter": 0.0}
FAILS = {"false": {"success": False, "stderr": "no"}}


@host_operation
def say(word: str) -> Commands:
    """
    Say a word.

    + word: the word
    """
    yield quote_command(word)


class Recorded(RunReport):
    """Notes the progress at the end of each operation of a host."""

    def __init__(self, state: State) -> None:
        super().__init__(state)
        self.seen: list[RunProgress | None] = []
        self.host("@fake/idle").examined = True

    def progress(self) -> RunProgress | None:
        return self.display.progress()

    def operation_host_success(  # type: ignore[override]
        self, state: State, host: Host, op_hash: str, retry_count: int = 0
    ) -> None:
        self.seen.append(self.progress())
        super().operation_host_success(state, host, op_hash, retry_count)


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The lines printed between the live lines."""
    said: list[str] = []
    monkeypatch.setattr(LiveProgress, "say", lambda self, line: said.append(line))
    return said


@pytest.fixture
def state() -> State:
    hosts = [
        ("@fake/one", FAKE),
        ("@fake/broken", {**FAKE, "fake_responses": FAILS}),
        ("@fake/idle", FAKE),
    ]
    return State(Inventory((hosts, {}), {}), Config(), check_for_changes=False)


def carry_out(state: State) -> Recorded:
    """Connect, plan and run: a word each on the hosts that are not idle."""
    state.set_stage(StateStage.Connect)
    connect_all(state)
    state.set_stage(StateStage.Prepare)
    display = Recorded(state)
    state.add_callback_handler(display)
    reading = display.progress()
    assert reading
    assert (reading.stage, reading.silent) == ("reading", ("@fake/one", "@fake/broken"))

    def deploy() -> None:
        if pyinfra.host.name != "@fake/idle":
            say("Say hello", "hello")
            say("Say false", "false" if pyinfra.host.name == "@fake/broken" else "true")

    add_deploy(state, deploy)
    state.set_stage(StateStage.Execute)
    run_ops(state)
    return display


def test_hosts_without_a_connection_are_named(state: State) -> None:
    state.set_stage(StateStage.Connect)
    display = Recorded(state)
    one, broken, _ = state.inventory
    connect_all(state)
    one.connected = False
    state.failed_hosts.add(broken)
    found = display.progress()
    assert found
    assert (found.stage, found.hosts, found.silent) == ("connecting", 3, ("@fake/one",))
    one.connected = True
    found = display.progress()
    assert found
    assert found.silent == ()


def test_every_host_is_counted_in_one_place(state: State, lines: list[str]) -> None:
    display = carry_out(state)
    first, *_, last = display.seen
    assert first
    assert last
    for found in (first, last):
        assert (found.stage, found.hosts, found.unchanged) == ("running", 3, 1)
        assert len(found.active) + found.waiting + found.done + found.failed == 2
    assert {host.step for host in first.active} == {"Say hello"}
    assert {host.name for host in first.active} <= {"@fake/one", "@fake/broken"}
    end = display.progress()
    assert end
    assert (end.done, end.failed, end.unchanged, end.active) == (1, 1, 1, ())
    state.set_stage(StateStage.Disconnect)
    assert display.progress() is None


def test_a_run_that_config_py_began_is_registered_once(
    state: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    began = RunReport(state)
    monkeypatch.setattr(RunReport, "begun", began)
    assert RunReport.of(state) is began
    assert RunReport.of(state) is began
    assert list(state.callback_handlers) == [began]


def test_a_step_is_one_line_for_all_its_hosts(state: State, lines: list[str]) -> None:
    carry_out(state)
    assert [line.rpartition(",")[0].strip() for line in lines] == [
        "Say hello: done on 2 hosts (@fake/one, @fake/broken)",
        "Say false: done on @fake/one, failed on @fake/broken",
    ]


@pytest.fixture
def logged() -> Iterator[list[logging.LogRecord]]:
    """The log records of pyinfra."""
    records: list[logging.LogRecord] = []
    handler = logging.Handler(logging.INFO)
    handler.emit = records.append  # type: ignore[method-assign, assignment]
    level = pyinfra.logger.level
    pyinfra.logger.addHandler(handler)
    pyinfra.logger.setLevel(logging.INFO)
    yield records
    pyinfra.logger.removeHandler(handler)
    pyinfra.logger.setLevel(level)


@pytest.mark.parametrize("terminal", [False, True])
def test_pyinfras_lines_per_host_are_kept_back_and_errors_are_not(
    state: State, lines: list[str], logged: list[logging.LogRecord], terminal: bool
) -> None:
    carry_out(state)
    pyinfra.logger.info("of a user's deploy")
    state.inventory.get_host("@fake/one").log("of a user's deploy, for one host")
    quiet = Quiet(state, names=not terminal)
    kept = [record.getMessage() for record in logged if quiet.filter(record)]
    gone = [record.getMessage() for record in logged if not quiet.filter(record)]
    words = ("Connected", "Skipped", "Success")
    assert all(any(word in line for line in gone) for word in words), gone
    assert not any(word in line for line in kept for word in words)
    assert sum("of a user's deploy" in line for line in kept) == 2
    assert [line for line in kept if "@fake/broken" in line and line.endswith("no")], kept
    assert any("Error: executed 0 commands" in line for line in gone), "the table says it"
    assert sum("Starting operation" in line for line in kept) == (0 if terminal else 2)


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("No hosts remaining!", None),
        ("Over 20% of hosts failed (50%)", "Over 20% of hosts failed (50%). The run ends here: see "
         "the table below for the reason."),
        ("Invalid data key", "--> pyinfra error in deploys/gpu_node.py line 7: Invalid data key"),
    ],
)  # fmt: skip
def test_a_run_that_cannot_continue_names_no_line_of_code(
    state: State, said: str, shown: str | None
) -> None:
    """pyinfra's command, which tests cannot import, prints such an error."""
    text = f"--> pyinfra error in deploys/gpu_node.py line 7: {said}"
    place = f"{Path(pyinfra.__file__).parent}_cli/exceptions.py"
    record = logging.LogRecord("pyinfra", logging.WARNING, place, 70, text, None, None, "show")
    kept = Quiet(state, names=True).filter(record)
    assert (record.getMessage() if kept else None) == shown


@pytest.mark.parametrize(
    ("asked", "terminal", "shown"),
    [
        (Invocation(yes=True), True, True),
        (Invocation(dry=True), True, True),
        (Invocation(), False, True),
        (Invocation(), True, False),
        (Invocation(yes=True, detail=True), True, False),
        (Invocation(yes=True, detail=True), False, False),
    ],
)
def test_pyinfras_own_output_is_there_where_it_asks_or_is_asked_for(
    state: State, monkeypatch: pytest.MonkeyPatch, asked: Invocation, terminal: bool, shown: bool
) -> None:
    monkeypatch.setattr(pyinfra, "is_cli", True)
    monkeypatch.setattr("gpufleet.run.display.on_terminal", lambda: terminal)
    started: list[bool] = []
    monkeypatch.setattr(LiveProgress, "start", lambda self: started.append(True))
    monkeypatch.delenv("PYINFRA_PROGRESS", raising=False)
    display = Display(RunReport(state))
    display.start(asked)
    assert bool(started) is shown
    display.end()
    assert not any(isinstance(found, Quiet) for found in pyinfra.logger.filters)


@pytest.mark.parametrize("value", ["", "1"])
def test_pyinfra_prints_no_color_where_none_is_wanted(
    state: State, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    """It does so by click, which prints colors on a terminal."""
    monkeypatch.setenv("NO_COLOR", value)
    with click.Context(click.Command("pyinfra")) as context:
        Display(RunReport(state)).start(Invocation(detail=True))
        assert context.color is (False if value else None)


def test_a_quiet_run_names_no_steps(
    state: State, lines: list[str], logged: list[logging.LogRecord], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(QUIET, "1")
    display = carry_out(state)
    assert not lines
    kept = [each.getMessage() for each in logged if display.display._filter.filter(each)]
    assert not any("Starting operation" in line for line in kept)
    assert not any("@fake/broken" in line for line in kept), "the table has each error once"
