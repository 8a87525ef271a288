"""Load Kubernetes manifests: PyYAML must accept what Go's parser accepts."""

from __future__ import annotations

from collections import deque
from typing import Any

import yaml

from gpufleet.core.yaml_events import LOADER, events


class ManifestLoader(LOADER):  # type: ignore[misc]
    """A bare `=` is text, as in the matchers of the Prometheus Operator's CRDs."""


ManifestLoader.add_constructor(
    "tag:yaml.org,2002:value", lambda loader, node: loader.construct_scalar(node)
)


def load_manifests(text: str | bytes) -> list[Any]:
    """Every document of a text. Raises YAMLError, also if it is nested too deep."""
    deque(events(text), maxlen=0)  # raises here, not in C code, where it is nested too deep
    return list(yaml.load_all(text, Loader=ManifestLoader))
