"""Merges mappings, and reads and sets values at paths of keys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def merge_mappings(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Merge two mappings, key by key at every depth. A value of `over` wins, even None."""
    result = dict(base)
    for key, value in over.items():
        below = result.get(key)
        if isinstance(below, Mapping) and isinstance(value, Mapping):
            value = merge_mappings(below, value)
        result[key] = value
    return result


def value_at(values: Any, path: str, default: Any = None) -> Any:
    """The value at a path of keys such as a.b.c, or `default` if a key is missing."""
    for key in path.split("."):
        if not isinstance(values, Mapping) or key not in values:
            return default
        values = values[key]
    return values


def with_value(values: Mapping[str, Any], path: str, value: Any) -> dict[str, Any]:
    """A copy of `values` with `value` set at a path of keys."""
    key, _, rest = path.partition(".")
    if not rest:
        return {**values, key: value}
    inner = values.get(key)
    return {**values, key: with_value(inner if isinstance(inner, Mapping) else {}, rest, value)}


def without_value(values: Mapping[str, Any], path: str | Sequence[str]) -> dict[str, Any]:
    """A copy of `values` without the key at a path, which is one text or a list of keys."""
    key, *rest = path.split(".") if isinstance(path, str) else path
    if not rest:
        return {name: value for name, value in values.items() if name != key}
    inner = values.get(key)
    return {**values, key: without_value(inner, rest)} if isinstance(inner, Mapping) else {**values}
