"""Parses the host's properties that kubeadm requires."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from gpufleet.facts.model import ClusterHost
from gpufleet.facts.sections import split_records


def parse_cluster_host(lines: Sequence[str]) -> ClusterHost:
    """Raises ValueError for a malformed number."""
    texts: dict[str, str] = {}
    numbers: dict[str, int] = {}
    listed: dict[str, list[str]] = {"swap": [], "mac": [], "path": [], "authority": []}
    for word, rest in split_records(lines):
        if word in listed:
            listed[word].append(rest)
        elif word in ("name", "server", "advertised"):
            texts[word] = rest
        elif word in ("cgroups", "processors", "memory"):
            numbers[word] = int(rest)
    return ClusterHost(
        name=texts.get("name", ""),
        server=texts.get("server", ""),
        advertised=texts.get("advertised", ""),
        **numbers,
        swap=tuple(listed["swap"]),
        macs=tuple(listed["mac"]),
        paths=frozenset(listed["path"]),
        authorities=frozenset(map(certificate_digest, listed["authority"])),
    )


def certificate_digest(certificate: str) -> str:
    """The sha256 of a certificate in the base64 of its PEM, without line breaks."""
    return hashlib.sha256(certificate.encode()).hexdigest()
