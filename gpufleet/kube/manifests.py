"""Load Kubernetes manifests: PyYAML must accept what Go's parser accepts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import yaml

from gpufleet.core.yaml_events import LOADER, events


class ManifestLoader(LOADER):  # type: ignore[misc]
    """A bare `=` is text, as in the matchers of the Prometheus Operator's CRDs."""


ManifestLoader.add_constructor(
    "tag:yaml.org,2002:value", lambda loader, node: loader.construct_scalar(node)
)


LARGEST = 1_000_000  # values with all aliases expanded


def load_manifests(text: str | bytes) -> list[Any]:
    """Every document of a text. Raises YAMLError, also if it is nested too deep or too large."""
    for document in _sizes(text):
        if document > LARGEST:
            raise yaml.YAMLError(f"it has more than {LARGEST} values with its aliases expanded")
    return list(yaml.load_all(text, Loader=ManifestLoader))


def _sizes(text: str | bytes) -> Iterator[int]:
    """The number of values of each top-level node, with its aliases expanded."""
    anchors: dict[str, int] = {}
    around: list[tuple[str | None, int]] = []  # anchor and current size of each open collection
    for event in events(text):
        if isinstance(event, yaml.CollectionStartEvent):
            around.append((event.anchor, 1))
            continue
        if isinstance(event, yaml.CollectionEndEvent):
            anchor, size = around.pop()
        elif isinstance(event, yaml.ScalarEvent):
            anchor, size = event.anchor, 1
        elif isinstance(event, yaml.AliasEvent):
            anchor, size = None, anchors.get(event.anchor or "", 1)
        else:
            continue
        if anchor:
            anchors[anchor] = size
        if around:
            around[-1] = (around[-1][0], min(around[-1][1] + size, LARGEST + 1))
        else:
            yield size
