"""What kubeadm requires of a host, from the section `kubernetes` of gather.sh."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from gpufleet.facts.model import ClusterHost
from gpufleet.facts.sections import records


def parse_cluster_host(lines: Sequence[str]) -> ClusterHost:
    """Raises ValueError for a number that is none."""
    name = ""
    numbers: dict[str, int] = {}
    listed: dict[str, list[str]] = {"swap": [], "mac": [], "path": [], "authority": []}
    for word, rest in records(lines):
        if word in listed:
            listed[word].append(rest)
        elif word == "name":
            name = rest
        elif word in ("cgroups", "processors", "memory"):
            numbers[word] = int(rest)
    return ClusterHost(
        name=name,
        **numbers,
        swap=tuple(listed["swap"]),
        macs=tuple(listed["mac"]),
        paths=frozenset(listed["path"]),
        authorities=frozenset(map(digest, listed["authority"])),
    )


def digest(certificate: str) -> str:
    """The sha256 of a certificate as PEM has it: base64, without line breaks."""
    return hashlib.sha256(certificate.encode()).hexdigest()
