"""Finds missing permissions in error messages of the API server. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable

from gpufleet.core.findings import Finding
from gpufleet.core.quoting import quote_field
from gpufleet.kube import findings

MAX_SHOWN_PERMISSIONS = 30  # permissions in a finding
# only Kubernetes names, because users may paste a server's text into a shell
_FORBIDDEN = re.compile(
    r'cannot (?P<verb>[a-z*]{1,40}) resource "(?P<resource>[a-z0-9./*-]{1,253})"'
    r' in API group "(?P<group>[a-z0-9.*-]{0,253})"'
    r'(?: in the namespace "(?P<namespace>[a-z0-9.-]{1,253})")?'
)


def speaks_of_permissions(message: str) -> bool:
    return bool(_FORBIDDEN.search(message))


def missing_permissions(context: str, messages: Iterable[str]) -> Finding:
    """One finding for all verbs in the messages."""
    verbs: dict[str, None] = {}
    others: dict[str, None] = {}
    for message in messages:
        for match in _FORBIDDEN.finditer(message):
            resource = ".".join(filter(None, (match["resource"], match["group"])))
            where = f"in namespace {match['namespace']}" if match["namespace"] else "anywhere"
            verbs[f"{match['verb']} {resource} {where}"] = None
        if not speaks_of_permissions(message):
            others[quote_field(message)] = None
    example = " ".join(next(iter(verbs), "--list").split()[:2])
    missing = [*verbs, *others]
    shown, more = missing[:MAX_SHOWN_PERMISSIONS], len(missing) - MAX_SHOWN_PERMISSIONS
    if more > 0:
        shown.append(f"and {more} more")
    return findings.FORBIDDEN(context=context, missing=", ".join(shown), example=example)
