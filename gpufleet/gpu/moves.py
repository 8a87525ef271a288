"""The present and the wanted state of a host's GPUs as texts, for an upgrade of them. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gpufleet.driver.files import own_gpus
from gpufleet.facts.gpu import LAYOUT_FILE, GpuState
from gpufleet.facts.model import NodeFacts
from gpufleet.gpu.files import parse_words
from gpufleet.gpu.layouts import OFF, parse_layout
from gpufleet.gpu.lines import STAYS, Words, layout_word, lines_text, parse_lines
from gpufleet.gpu.plan import GpuPlan, gpu_differences

UNREAD_KEYS = ("clocks", "memory")  # nvidia-smi does not print locked clocks


@dataclass(frozen=True, slots=True)
class GpuMove:
    """The texts before and after a change. They are the same if no program needs to end for it.
    `settled`: a boot does not change the layout."""

    before: str
    target: str
    settled: bool


def gpu_move(plan: GpuPlan, facts: NodeFacts) -> GpuMove | None:
    """The change of a host's GPUs, or None if the state of one of them is not known, or is not one
    that gpufleet can make again."""
    try:
        return _move(plan, facts)
    except ValueError:  # of MIG instances or words that gpufleet does not write
        return None


def _move(plan: GpuPlan, facts: NodeFacts) -> GpuMove | None:
    states = {state.slot: state for state in facts.listed.states} if facts.listed else {}
    file = facts.files.get(LAYOUT_FILE)
    lines = ((file.content if file else None) or "").splitlines()
    earlier = {slot: words for slot, _, words in (line.partition(" ") for line in lines)}
    now: dict[int, Words] = {}
    after: dict[int, Words] = {}
    settled = True
    for index, gpu in enumerate(own_gpus(facts)):
        slot = gpu.slot.lower()
        if slot not in states:
            return None
        wanted, kept = parse_words(plan.lines.get(slot, "")), parse_words(earlier.get(slot, ""))
        after[index] = _as_text(states[slot], wanted)
        settled &= not {"mig", "ecc"} & gpu_differences(states[slot], kept).keys()
        now[index] = _as_text(states[slot], _present(states[slot], kept, wanted))
    target = lines_text(after)
    before = lines_text(now) if plan.disturbs else target
    for text in (before, target):
        parse_lines(text)
    return GpuMove(before, target, settled)


def _present(state: GpuState, kept: Words, wanted: Words) -> dict[str, str]:
    """The words of the present state, for every key that is managed before or after the change. A
    word that holds is left as it is written: the default power limit has no number."""
    differs = gpu_differences(state, kept)
    read: dict[str, str | None] = {
        "mig": ",".join(state.devices) or OFF,
        "ecc": None if state.ecc is None else str(int(state.ecc)),
        "power": None if state.power is None else f"{state.power:.0f}",
        "compute": state.compute_mode or None,
        **dict.fromkeys(UNREAD_KEYS, "default"),
    }
    holds = {key: value for key, value in kept.items() if key not in differs}
    found = {key: holds.get(key, read.get(key)) for key in {**wanted, **kept}}
    return {key: value for key, value in found.items() if value is not None}


def _as_text(state: GpuState, words: Mapping[str, str]) -> dict[str, str]:
    """The words of a line as those of a text."""
    found = {key: value for key, value in words.items() if key != "reset"}
    if "mig" in found:
        return {**found, "mig": layout_word(parse_layout(found["mig"]))}
    return {**found, STAYS: layout_word(state.devices)}
