"""Merges a user's values of a chart over gpufleet's. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import yaml

from gpufleet.core.merge import merge_mappings, value_at, with_value, without_value
from gpufleet.helm.chart_models import Chart

Values = Mapping[str, Any]
_LABELS = re.compile(r"([^\s,=]+)=\[([^\]]*)\]")  # nodes=[a,b], for kube-state-metrics


def combine_values(chart: Chart, ours: Values, theirs: Values) -> dict[str, Any]:
    """The user's values over ours.

    Ours are dropped if the user sets the same thing in another way. Named lists are joined. Empty
    values, as in a copied file, do not replace ours; None removes them.
    """
    theirs = _without_empty(theirs, ours)
    for path, others in chart.gives_way.items():
        mine, said = value_at(ours, path), [value_at(theirs, other) for other in others]
        over = value_at(theirs, path) or {}
        if any(said):
            ours = without_value(ours, path)
        elif all(isinstance(one, Mapping) for one in (mine, over)) and False not in said:
            # the user's other entries have no effect
            theirs = with_value(theirs, path, merge_mappings(over, mine))
    result = merge_mappings(ours, theirs)
    for path, name in chart.named_lists.items():
        mine, yours = value_at(ours, path), value_at(theirs, path)
        if isinstance(yours, str):
            yours = [yours] if name == "=" else _parsed(yours)
        if isinstance(mine, list) and isinstance(yours, list | tuple):
            result = with_value(result, path, _joined(mine, yours, name))
    return result


def _without_empty(theirs: Values, ours: Values) -> dict[str, Any]:
    """The user's values without empty ones that would replace a value of ours."""
    kept = {}
    for key, value in theirs.items():
        mine = ours.get(key)
        if isinstance(value, Mapping) and isinstance(mine, Mapping):
            kept[key] = _without_empty(value, mine)
        elif not mine or value is None or value not in ("", [], (), {}):
            kept[key] = value
    return kept


def _parsed(text: str) -> Any:
    """The list in a text, a form that charts also accept. None if it is not plain YAML."""
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError:
        return None


def _joined(ours: Sequence[Any], theirs: Sequence[Any], name: str) -> list[Any]:
    """The entries of both lists. For an equal name, only the user's."""
    if name == "=":
        return _joined_labels([*ours, *theirs])
    named = [_named(entry, name) for entry in theirs]
    return [*(entry for entry in ours if _named(entry, name) not in named), *theirs]


def _named(entry: Any, name: str) -> Any:
    """The identity of an entry: its name, or the whole entry if it has none."""
    found = value_at(entry, name) if name else None
    return entry if found is None else found


def _joined_labels(entries: Sequence[Any]) -> list[Any]:
    """Merge lists of labels to one per resource. kube-state-metrics would use only the last one."""
    found: dict[str, dict[str, None]] = {}
    others = [entry for entry in entries if not _LABELS.search(str(entry))]
    for resource, labels in _LABELS.findall(",".join(map(str, entries))):
        names = (label.strip() for label in labels.split(","))
        found.setdefault(resource, {}).update(dict.fromkeys(filter(None, names)))
    for resource, labels in found.items():
        others.append(f"{resource}=[{'*' if '*' in labels else ','.join(labels)}]")
    return others
