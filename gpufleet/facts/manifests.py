"""Kubernetes manifests as YAML: what Go's parser takes, PyYAML's must take too."""

from __future__ import annotations

from typing import Any

import yaml

_BASE: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class ManifestLoader(_BASE):  # type: ignore[misc]
    """A bare `=` is text, as in the matchers of the Prometheus Operator's CRDs."""


ManifestLoader.add_constructor(
    "tag:yaml.org,2002:value", lambda loader, node: loader.construct_scalar(node)
)
