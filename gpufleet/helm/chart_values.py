"""Compares values of a chart, shows differences without secrets, finds unknown values. Pure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches, unified_diff
from typing import Any

from gpufleet.core.findings import Finding
from gpufleet.core.masks import mask_value
from gpufleet.core.names import count_noun
from gpufleet.core.visible import one_line
from gpufleet.core.yaml_text import yaml_text
from gpufleet.helm.chart import ChartContent
from gpufleet.helm.findings import releases as findings

Values = Mapping[str, Any]
Path = tuple[str, ...]
MAX_DIFF_LINES = 40  # of a release's values, without pyinfra's --diff
VALUE_SIMILARITY = 0.75  # similarity of two keys that differ by a typo; 1 means equal


def same_values(old: Any, new: Any) -> bool:
    """True if two values, or sets of values, are equal. Numbers are compared as in JSON."""
    return _canonical(old) == _canonical(new)


def _canonical(value: Any) -> str:
    return json.dumps(_plain(value), sort_keys=True)


def _plain(value: Any) -> Any:
    """`value` as in JSON: 1.0 is 1, a tuple is a list, keys are text."""
    if isinstance(value, Mapping):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def values_mark(values: Values) -> str:
    """16 hex digits: a hash of the values without possible secrets."""
    return hashlib.sha256(_canonical(mask_value(_plain(values))).encode()).hexdigest()[:16]


def values_diff(old: Values, new: Values, before: str, after: str) -> tuple[str, ...]:
    """Unified diff of two sets of values as YAML. Possible secrets only show that they changed."""
    lines = unified_diff(
        _yaml(mask_value(_plain(old))),
        _yaml(mask_value(_plain(new), _plain(old))),
        fromfile=before,
        tofile=after,
        n=2,
        lineterm="",
    )
    return tuple(map(one_line, lines))


def shorten_diff(diff: Sequence[str]) -> tuple[str, ...]:
    """The first lines of a diff, and how many follow."""
    more = len(diff) - MAX_DIFF_LINES
    tail = [f"and {count_noun(more, 'line')} more: `gpufleet plan INVENTORY -- --diff`"]
    return (*diff[:MAX_DIFF_LINES], *(tail if more > 0 else []))


def _yaml(values: Any) -> list[str]:
    if not values:
        return []
    return yaml_text(values, sort_keys=True).rstrip("\n").split("\n")


def unknown_values(values: Values, chart: ChartContent) -> list[Finding]:
    """A finding for every key that the chart does not know and that resembles a known key. Charts
    list some of their values only in comments and templates."""
    known = chart.known_values()
    return [
        findings.VALUE_UNKNOWN(
            key=".".join(path), chart=f"{chart.name} {chart.version}", suggestion=suggestion
        )
        for path, value in _unknown(values, known)
        if (suggestion := _suggestion(path, value, known, chart.name))
    ]


def _unknown(values: Values, known: Values, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Paths that `known` lacks, with their values. A map that is empty in `known` accepts any
    key."""
    for key, value in values.items():
        here = (*path, str(key))
        if key not in known:
            if here != ("global",):
                yield here, value
        elif isinstance(value, Mapping) and isinstance(known[key], Mapping) and known[key]:
            yield from _unknown(value, known[key], here)


def _suggestion(path: Path, value: Any, known: Values, chart: str) -> str:
    """Suggests a known key for an unknown one: its contents, the same key deeper, a similar one."""
    *above, last = path
    nested = isinstance(value, Mapping) and (value.keys() <= known.keys() if value else False)
    if not above and (nested or last == chart):
        return f"These are values for an umbrella chart: move what is below {last} one level up. "
    for part in above:
        known = known[part]
    deeper = [
        f"{key}.{last}"
        for key, inner in known.items()
        if isinstance(inner, Mapping) and last in inner
    ]
    close = get_close_matches(last, map(str, known), n=1, cutoff=VALUE_SIMILARITY)
    meant = deeper if len(deeper) == 1 else close
    return f"Did you mean {'.'.join([*above, *meant])}? " if meant else ""
