"""Which cluster a node is in: by the certificate authorities that it trusts. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from gpufleet.core.findings import Finding
from gpufleet.facts.model import ClusterHost
from gpufleet.kubernetes import findings as found
from gpufleet.kubernetes.plan import JOINED


def elsewhere(host: ClusterHost, plane: ClusterHost) -> Iterator[Finding]:
    """Whether a node's cluster is another than that of the first control plane: they have no
    authority in common, or that one has no cluster."""
    if JOINED not in host.paths or not host.authorities:
        return
    known = plane.authorities if JOINED in plane.paths else frozenset()
    unknown = JOINED in plane.paths and not known
    if not unknown and host.authorities.isdisjoint(known):
        yield found.NODE_ELSEWHERE(control_plane=plane.name)
