"""Loads Kubernetes manifests, including YAML that only Go's parser accepts."""

from __future__ import annotations

from collections import deque
from typing import Any

import yaml

from gpufleet.core.yaml_events import LOADER, parse_yaml_events


class ManifestLoader(LOADER):  # type: ignore[misc]
    """Reads a bare `=` as text. The matchers in the Prometheus Operator's CRDs use it."""


ManifestLoader.add_constructor(
    "tag:yaml.org,2002:value", lambda loader, node: loader.construct_scalar(node)
)


def load_manifests(text: str | bytes) -> list[Any]:
    """Every document of a text. Raises YAMLError, also if it is nested too deep."""
    deque(parse_yaml_events(text), maxlen=0)  # raises for deep nesting, which C code must not read
    return list(yaml.load_all(text, Loader=ManifestLoader))
