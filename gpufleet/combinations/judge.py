"""Judges versions by the table of known-bad combinations. Pure."""

from __future__ import annotations

from gpufleet.combinations.findings import KNOWN_BAD
from gpufleet.combinations.models import Combination, Combinations, Components
from gpufleet.core.findings import Finding


def judge_combinations(
    installed: Components, wanted: Components, table: Combinations
) -> list[Finding]:
    """A finding for each entry that fits the versions after the run.

    `wanted`: versions that the run installs; "" for a version that only the repository knows.
    Example: an entry about toolkit 1.18.0 and containerd 2.2 fits a host with that containerd on
    which the run installs that toolkit, and not if it installs toolkit 1.20.1 there.
    """
    after = components_after(installed, wanted)
    return [_finding(entry, after) for entry in table.combinations if entry.fits(after)]


def components_after(installed: Components, wanted: Components) -> Components:
    """The components of a host or cluster after the run."""
    return Components({**installed.versions, **wanted.versions}, installed.traits | wanted.traits)


def _finding(entry: Combination, found: Components) -> Finding:
    named = ", ".join(f"{name} {found.versions[name]}" for name in entry.versions)
    return KNOWN_BAD(
        severity=entry.severity,
        versions=named,
        happens=entry.happens,
        id=entry.id,
        remedy=entry.remedy,
        source=entry.source,
    )
