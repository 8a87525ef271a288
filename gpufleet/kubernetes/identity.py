"""Whether a host fits the cluster of the first control plane. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from gpufleet.core.findings import Finding
from gpufleet.core.versions import version_tuple
from gpufleet.facts.model import ClusterHost, NodeFacts
from gpufleet.kubernetes.findings import cluster as found
from gpufleet.kubernetes.notes import (
    JOINED,
)


def elsewhere(host: ClusterHost, plane: ClusterHost) -> Iterator[Finding]:
    """Whether a node's cluster is another than that of the first control plane: they have no
    authority in common, or that one has no cluster."""
    if JOINED not in host.paths or not host.authorities:
        return
    known = plane.authorities if JOINED in plane.paths else frozenset()
    unknown = JOINED in plane.paths and not known
    if not unknown and host.authorities.isdisjoint(known):
        yield found.NODE_ELSEWHERE(control_plane=plane.name)


def newer(version: str, plane: NodeFacts) -> Iterator[Finding]:
    """A finding if the host would get a newer minor than its control plane has."""
    kubelet = plane.packages.get("kubelet")
    if kubelet is None or JOINED not in plane.cluster_host.paths:
        return
    if version_tuple(version)[:2] > version_tuple(kubelet.upstream)[:2]:
        yield found.VERSION_AHEAD(installed=version, cluster=kubelet.upstream)
