"""Names of the stack's images, as the charts write them: registry, repository and tag."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from gpufleet_sandbox.cluster.versions import versions
from gpufleet_sandbox.debian import debian_program
from gpufleet_sandbox.process import run


class Name(NamedTuple):
    """quay.io, prometheus/prometheus, v3.15.0."""

    registry: str
    repository: str
    tag: str

    def __str__(self) -> str:
        return f"{self.registry}/{self.repository}:{self.tag}"

    @property
    def values(self) -> dict[str, str]:
        """As the values of kube-prometheus-stack and its subcharts have it."""
        return self._asdict()


# name -> registry, repository, program whose version is the tag
_PLACES = {
    "operator": ("quay.io", "prometheus-operator/prometheus-operator", "prometheus-operator"),
    "reloader": (
        "quay.io", "prometheus-operator/prometheus-config-reloader", "prometheus-config-reloader"
    ),
    "prometheus": ("quay.io", "prometheus/prometheus", "prometheus"),
    "adapter": ("registry.k8s.io", "prometheus-adapter/prometheus-adapter", "prometheus-adapter"),
    "state": ("registry.k8s.io", "kube-state-metrics/kube-state-metrics", "kube-state-metrics"),
    "detector": (
        "registry.k8s.io", "node-problem-detector/node-problem-detector", "node-problem-detector"
    ),
}  # fmt: skip
# name -> registry, repository, package of this machine's distribution with that program
_PACKAGED = {
    "alertmanager": ("quay.io", "prometheus/alertmanager", "prometheus-alertmanager"),
    "node-exporter": ("quay.io", "prometheus/node-exporter", "prometheus-node-exporter"),
}
EXPORTER = Name("nvcr.io", "nvidia/k8s/dcgm-exporter", "4.6.0-4.8.3-distroless")


def names() -> dict[str, Name]:
    """Every image of the stack but the exporter's, by a short name."""
    found = {}
    for short, (registry, repository, program) in _PLACES.items():
        tag = versions().programs[program].version
        # Prometheus' module has v0.315.0 for what is released as v3.15.0
        if program == "prometheus":
            tag = f"v3.{int(tag.split('.')[1]) - 300}.{tag.split('.')[2]}"
        found[short] = Name(registry, repository, tag)
    for short, (registry, repository, package) in _PACKAGED.items():
        version = _version(debian_program(package, package))
        found[short] = Name(registry, repository, f"v{version}")
    return found


def packages() -> dict[str, str]:
    """Short name -> package of the distribution: Alertmanager's module lacks the pages that it
    embeds, and node-exporter need not be newer."""
    return {short: package for short, (_, _, package) in _PACKAGED.items()}


@lru_cache
def _version(program: Path) -> str:
    """0.25.0, as Prometheus' programs print it."""
    printed = run([program, "--version"], timeout=60)
    found = re.search(r"version (\d+\.\d+\.\d+)", printed.stdout + printed.stderr)
    assert found, printed
    return found[1]
