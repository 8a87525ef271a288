"""NodeFactsFact through pyinfra, on hosts that only answer."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from pyinfra.api import Config, Inventory, State
from pyinfra.api.connect import connect_all
from pyinfra.api.facts import get_fact

from gpufleet.facts.model import NodeFacts
from gpufleet.operations import facts as module
from gpufleet.operations.facts import NodeFactsFact

CAPTURE = Path(__file__).parent / "captures" / "ubuntu2204-kubelet-handwritten.txt"


def answers(**hosts: str) -> tuple[State, dict[str, Any]]:
    """Hosts by name, each with what it prints for the one command."""
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
    state, hosts = answers(good=CAPTURE.read_text("utf-8"))
    facts = get_fact(state, hosts["good"], NodeFactsFact)
    assert isinstance(facts, NodeFacts)
    assert facts.hostname == "gpu-07"
    assert abs(facts.received - time.time()) < 60
    assert facts.clock_skew == facts.clock - facts.received
    assert len(hosts["good"].connector.executed_commands) == 1


def test_an_answer_that_cannot_be_read_fails_its_host_alone(
    capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    text = CAPTURE.read_text("utf-8")
    state, hosts = answers(good=text, cut=text[:3000])
    assert get_fact(state, hosts["cut"], NodeFactsFact) is None
    assert state.failed_hosts == {hosts["cut"]}
    assert "section" in caplog.text + capsys.readouterr().err
    assert get_fact(state, hosts["good"], NodeFactsFact) is not None


def test_the_controller_knows_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    ids = ("0123456789abcdef0123456789abcdef", "6b7cf6a5-0c4e-4d37-9bd0-5b6f9a5d5f10")
    lines = CAPTURE.read_text("utf-8").splitlines()
    assert not NodeFactsFact().process(lines).controller
    monkeypatch.setattr(module, "_controller", lambda: ids)
    assert NodeFactsFact().process(lines).controller
