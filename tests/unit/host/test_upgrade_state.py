"""The file on a host with the state of its upgrade. Its content is not trusted."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from gpufleet.host.upgrade_state import (
    LONGEST_WHY,
    MAX_STATE_BYTES,
    SCHEMA,
    HostState,
    Phase,
    both_reasons,
    parse_state,
    state_text,
)

pytestmark = pytest.mark.claim("The state of an upgrade is on the host, for root only.", level=1)

STATE = HostState("r-1", "upgrade", "driver", "580.1", "580.2", "2 x A100, ubuntu2204, 5.15", 0)


def test_a_state_is_read_as_it_was_written() -> None:
    state = STATE.moved(Phase.DRAINING, 5.0, "GF072 in\nuse", out=True, commanded=True)
    assert parse_state(state_text(state)) == state
    assert "\n" not in state.why
    assert parse_state("") is None


@pytest.mark.parametrize("letter", ["x", "ü", "🔥", '"'])
def test_the_file_has_a_page_at_most(letter: str) -> None:
    state = replace(STATE, before="1" * 1200, target="2" * 1200, group="g" * 200)
    text = state_text(state.moved(Phase.STUCK, 1.0, letter * 5000))
    assert len(text.encode()) <= MAX_STATE_BYTES
    assert parse_state(text)


@pytest.mark.parametrize(
    "change",
    [
        {"schema": SCHEMA + 1},
        {"schema": None},
        {"run": "../../etc"},
        {"run": "r" * 64},
        {"phase": "drained"},
        {"kind": "other"},
        {"subject": "kernel"},
        {"since": -1},
        {"since": 1e300},
        {"since": "soon"},
        {"wave": -1},
        {"attempts": 10**9},
        {"why": "a\x1b[2J"},
        {"target": "580\n2"},
        {"target": "2" * 1201},
        {"before": '"' * 9},
        {"before": "é"},
        {"group": "g" * 201},
        {"more": 1},
    ],
)
def test_what_no_run_writes_is_refused(change: dict[str, Any]) -> None:
    data = {**json.loads(state_text(STATE)), **change}
    with pytest.raises(ValueError):  # noqa: PT011 of several kinds
        parse_state(json.dumps(data))


@pytest.mark.parametrize("text", ["{", "[]", "7", "[" * 4000, "x" * 5000, '{"schema": 1}'])
def test_what_is_no_state_is_refused(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011
        parse_state(text)


def test_a_long_roll_back_leaves_room_for_the_reason_of_the_change() -> None:
    change = "GF550 h: not built: nv.c:12: error " + "y" * 1000
    found = both_reasons("GF340 h: " + "x" * 1000, change)
    assert len(found) <= LONGEST_WHY
    assert "…; its change: GF550 h: not built: nv.c:12: error y" in found
    assert found.endswith("…")
