"""The mark of a run on a node, as the text of an annotation. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from gpufleet.upgrade.states import Event

_LABEL = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_text_or_none(value: Any) -> bool:
    return value is None or isinstance(value, str)


def _is_label_or_none(value: Any) -> bool:
    """The API takes back no label that it does not allow: the node would stay out of service."""
    return value is None or (isinstance(value, str) and _LABEL.fullmatch(value) is not None)


def _is_list(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_text, value))


def _is_table(value: Any) -> bool:
    return isinstance(value, dict) and all(map(_is_text, value.values()))


FIELDS: Mapping[str, Callable[[Any], bool]] = {  # of a mark, and whether a run wrote the value
    "run": _is_text,
    "since": _is_text,
    "pending": lambda value: isinstance(value, bool),  # the node is not cordoned yet
    "unschedulable": lambda value: isinstance(value, bool),
    "managed": _is_label_or_none,
    "scale_down": _is_text_or_none,
    "gpus": _is_table,
    "clients": _is_list,
}
UNKNOWN = {"run": "?"}  # mark that cannot be used


def read_mark(text: Any) -> dict[str, Any]:
    """What a run wrote down; {} without a text. A node can write it, too: fields that no run writes
    are left out, and a mark that cannot be used is that of an unknown run."""
    if not text:
        return {}
    try:
        found = json.loads(text)
    except (ValueError, TypeError, RecursionError):
        return dict(UNKNOWN)
    if not isinstance(found, dict) or not isinstance(found.get("run"), str):
        return dict(UNKNOWN)
    return {key: value for key, value in found.items() if key in FIELDS and FIELDS[key](value)}


@dataclass(frozen=True, slots=True)
class Cordon:
    """The cordon of a node, as its run has recorded it. `text`: the mark that was
    written with it, "" where that is not known; `seen`: the cluster has shown the node with it;
    `theirs`: another user uncordoned the node since; `sure`: this process has the answer that the
    node was cordoned, with its mark or without; `tries`: marks that were written down for it."""

    text: str = ""
    seen: bool = False
    theirs: bool = False
    sure: bool = False
    tries: int = 0

    @property
    def mark(self) -> dict[str, Any]:
        return read_mark(self.text)


NEVER = Cordon()  # it was not begun, or that is not known


def cordon_after(before: Cordon, event: Event, mark: str) -> Cordon:
    """The cordon of a node after an event of it. `mark`: of the event."""
    if event is Event.UNCORDONED:  # it was seen with its mark
        return replace(before, seen=True, theirs=True)
    seen = event is Event.CORDONED
    return Cordon(mark, seen, tries=before.tries + (not seen))


def pending_mark(run: str, since: str) -> str:
    """The mark of a node that the run is about to cordon."""
    return json.dumps({"pending": True, "run": run, "since": since}, sort_keys=True)


def is_of(mark: Mapping[str, Any], run: str) -> bool:
    """Whether the mark is that of a node cordoned by this run, with the node's earlier state."""
    return mark.get("run") == run and "unschedulable" in mark
