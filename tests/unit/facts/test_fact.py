"""Facts through pyinfra, on hosts that only print prepared output."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyinfra.api import Config, Inventory, State
from pyinfra.api.connect import connect_all
from pyinfra.connectors.util import CommandOutput, OutputLine

from gpufleet.core.findings import Finding
from gpufleet.facts.model import NodeFacts
from gpufleet.facts.script import LINE_END
from gpufleet.host import facts as module
from gpufleet.host.facts import read_facts
from gpufleet.host.lock import HostLock, remember_lock
from tests.roles.answers import facts_of

CAPTURES = Path(__file__).parent / "captures"
CAPTURE = (CAPTURES / "ubuntu2204-kubelet-handwritten.txt").read_text("utf-8")


def answers(**hosts: str) -> tuple[State, dict[str, Any]]:
    """Connected fake hosts by name, each with its output of `uname -nrm`."""
    listed = [
        (
            f"@fake/{name}",
            {"fake_delay": 0.0, "fake_delay_jitter": 0.0, "fake_responses": {"uname -nrm": text}},
        )
        for name, text in hosts.items()
    ]
    inventory = Inventory((listed, {}))
    state = State(inventory=inventory, config=Config())
    connect_all(state)
    return state, {host.name.removeprefix("@fake/"): host for host in inventory}


def test_facts_of_a_host() -> None:
    _, hosts = answers(good=facts_of(CAPTURE))
    facts = read_facts(hosts["good"])
    assert isinstance(facts, NodeFacts)
    assert facts.kernel.release
    assert len(hosts["good"].connector.executed_commands) == 1


def test_the_lines_come_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    _, hosts = answers(good="")
    said = OutputLine("stdout", facts_of(CAPTURE).replace("\n", LINE_END))
    run = lambda *_, **__: (True, CommandOutput([said]))  # noqa: E731
    monkeypatch.setattr(hosts["good"].connector, "run_shell_command", run)
    assert isinstance(read_facts(hosts["good"]), NodeFacts)


def test_the_command_runs_with_the_privileges_of_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    _, hosts = answers(good=facts_of(CAPTURE))
    hosts["good"].data._doas = True
    seen = {}

    def run(*_: Any, **arguments: Any) -> Any:
        seen.update(arguments)
        raise EOFError

    monkeypatch.setattr(hosts["good"].connector, "run_shell_command", run)
    read_facts(hosts["good"])
    assert seen["_doas"] is True


def test_files_are_never_printed(capsys: pytest.CaptureFixture[str]) -> None:
    state, hosts = answers(good=facts_of(CAPTURE))
    state.print_output = state.print_fact_output = state.print_fact_input = True  # -vvv
    assert isinstance(read_facts(hosts["good"]), NodeFacts)
    shown = capsys.readouterr()
    assert "base64 " not in shown.out + shown.err


def test_lines_of_another_mark_are_not_read() -> None:
    """A process or a login script may print text that looks like a section of an earlier run."""
    forged = "@@os\nID=evil\n" + facts_of(CAPTURE) + "@@os\nID=evil\nclock 1\n"
    _, hosts = answers(good=forged)
    facts = read_facts(hosts["good"])
    assert isinstance(facts, NodeFacts)
    assert (facts.os.id, facts.clock != 1) == ("ubuntu", True)


def test_an_answer_that_cannot_be_read_names_the_section() -> None:
    _, hosts = answers(cut=facts_of(CAPTURE[:3000]))
    found = read_facts(hosts["cut"])
    assert isinstance(found, Finding)
    assert "section" in found.message


def test_the_controller_knows_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    ids = ("0123456789abcdef0123456789abcdef", "6b7cf6a5-0c4e-4d37-9bd0-5b6f9a5d5f10")
    _, hosts = answers(good=facts_of(CAPTURE))
    facts = read_facts(hosts["good"])
    assert isinstance(facts, NodeFacts)
    assert not facts.controller
    monkeypatch.setattr(module, "_controller", lambda: ids)
    facts = read_facts(hosts["good"])
    assert isinstance(facts, NodeFacts)
    assert facts.controller


@pytest.mark.parametrize("ours", [True, False])
def test_a_host_is_not_busy_with_the_run_that_reads_it(ours: bool) -> None:
    lock = HostLock("")
    text = CAPTURE.replace("\nuser ", f"\nrun {lock.text}\nheld\nuser ", 1)
    _, hosts = answers(good=facts_of(text))
    if ours:
        remember_lock(hosts["good"], lock)
    facts = read_facts(hosts["good"])
    assert isinstance(facts, NodeFacts)
    assert (facts.run_lock, facts.busy) == (lock.text, not ours)
