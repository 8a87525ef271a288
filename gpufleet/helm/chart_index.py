"""Parse the index of a chart repository: versions of a chart and their URLs. Pure.

Source: "The index file" in Helm's documentation of chart repositories.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import yaml

from gpufleet.core.yaml_events import parse_yaml_events


class BrokenIndex(ValueError):
    """Text that is not an index of a chart repository."""


@dataclass(frozen=True, slots=True)
class IndexEntry:
    """One version of a chart. `url`: absolute, or relative to the index. `digest`: the archive's
    sha256, or "". `kube_version`: the Kubernetes versions that it asks for, or ""."""

    version: str
    url: str
    digest: str
    kube_version: str = ""


def parse_index(text: bytes, chart: str) -> tuple[IndexEntry, ...]:
    """The versions of a chart, in the index's order, newest first. Raises BrokenIndex.

    Only the chart's entries are built: indexes have many megabytes, and building a whole one
    takes five times as long as parsing its events.
    """
    try:
        read = parse_yaml_events(text)
        for event in read:
            if isinstance(event, yaml.MappingStartEvent):
                return tuple(_entries(read, chart))
            if isinstance(event, yaml.NodeEvent):
                break
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        raise BrokenIndex(" ".join(str(error).split())) from error
    raise BrokenIndex("it is not a mapping")


def _entries(read: Iterator[Any], chart: str) -> Iterator[IndexEntry]:
    found = False
    for key, first in _pairs(read):
        if key != "entries":
            _skip(read, first)
            continue
        found = True
        if not isinstance(first, yaml.MappingStartEvent):
            _skip(read, first)  # a repository without charts has null or {}
            continue
        for name, versions in _pairs(read):
            if name == chart:
                yield from _versions(_build(read, versions))
            else:
                _skip(read, versions)
    if not found:
        raise BrokenIndex("it has no entries")


def _versions(items: Any) -> Iterator[IndexEntry]:
    for item in items if isinstance(items, list) else ():
        if not isinstance(item, dict) or not isinstance(item.get("version"), str):
            continue
        urls = item.get("urls")
        if isinstance(urls, list) and urls and isinstance(urls[0], str):
            digest = item.get("digest")
            text = digest.removeprefix("sha256:").lower() if isinstance(digest, str) else ""
            asked = item.get("kubeVersion")
            yield IndexEntry(
                item["version"], urls[0], text, asked if isinstance(asked, str) else ""
            )


def _pairs(read: Iterator[Any]) -> Iterator[tuple[str, Any]]:
    """The keys of an open mapping, each with the first event of its value. The caller must read the
    value to its end before the next pair."""
    for event in read:
        if isinstance(event, yaml.MappingEndEvent):
            return
        if not isinstance(event, yaml.ScalarEvent):
            raise BrokenIndex("it has a key that is not text")
        yield event.value, next(read)


def _skip(read: Iterator[Any], first: Any) -> None:
    depth = int(isinstance(first, yaml.CollectionStartEvent))
    while depth:
        event = next(read)
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)


def _build(read: Iterator[Any], first: Any) -> Any:
    """A value made of mappings, lists and text. Numbers remain text."""
    if isinstance(first, yaml.MappingStartEvent):
        return {key: _build(read, value) for key, value in _pairs(read)}
    if isinstance(first, yaml.SequenceStartEvent):
        items = []
        while not isinstance(event := next(read), yaml.SequenceEndEvent):
            items.append(_build(read, event))
        return items
    return first.value if isinstance(first, yaml.ScalarEvent) else None
