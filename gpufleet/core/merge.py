"""Mappings put over mappings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def merged(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """One mapping of both, key by key at every depth; where both have a value, that of `over`,
    None too."""
    result = dict(base)
    for key, value in over.items():
        below = result.get(key)
        if isinstance(below, Mapping) and isinstance(value, Mapping):
            value = merged(below, value)
        result[key] = value
    return result


def value_at(values: Any, path: str, default: Any = None) -> Any:
    """What stands at a path of keys such as a.b.c; `default` where there is no such key."""
    for key in path.split("."):
        if not isinstance(values, Mapping) or key not in values:
            return default
        values = values[key]
    return values


def with_value(values: Mapping[str, Any], path: str, value: Any) -> dict[str, Any]:
    """`values` with `value` at a path of keys, in place of what was there."""
    key, _, rest = path.partition(".")
    if not rest:
        return {**values, key: value}
    inner = values.get(key)
    return {**values, key: with_value(inner if isinstance(inner, Mapping) else {}, rest, value)}


def without_value(values: Mapping[str, Any], path: str) -> dict[str, Any]:
    """`values` without the key at a path."""
    key, _, rest = path.partition(".")
    if not rest:
        return {name: value for name, value in values.items() if name != key}
    inner = values.get(key)
    return {**values, key: without_value(inner, rest)} if isinstance(inner, Mapping) else {**values}
