"""Missing permissions, from the error messages of the API server. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable

from gpufleet.core.excerpt import sentences
from gpufleet.core.findings import Finding
from gpufleet.kube import findings

_FORBIDDEN = re.compile(
    r'cannot (?P<verb>\S+) resource "(?P<resource>[^"]*)" in API group "(?P<group>[^"]*)"'
    r'(?: in the namespace "(?P<namespace>[^"]*)")?'
)


def speaks_of_permissions(message: str) -> bool:
    return bool(_FORBIDDEN.search(message))


def missing_permissions(context: str, messages: Iterable[str]) -> Finding:
    """One finding for all verbs in the messages."""
    verbs: dict[str, None] = {}
    for message in messages:
        for match in _FORBIDDEN.finditer(message):
            resource = ".".join(filter(None, (match["resource"], match["group"])))
            where = f"in namespace {match['namespace']}" if match["namespace"] else "anywhere"
            verbs[f"{match['verb']} {resource} {where}"] = None
        if not speaks_of_permissions(message):
            verbs[sentences(message)] = None
    first = " ".join(next(iter(verbs)).split()[:2])
    return findings.FORBIDDEN(context=context, missing=", ".join(verbs), example=first)
