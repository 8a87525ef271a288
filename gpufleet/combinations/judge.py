"""Judges versions by the table of known-bad combinations. Pure."""

from __future__ import annotations

from gpufleet.combinations.findings import KNOWN_BAD, WOULD_BE_BAD
from gpufleet.combinations.models import Combination, Combinations, Components
from gpufleet.core.findings import Finding, Severity


def judge_combinations(
    installed: Components, wanted: Components, table: Combinations
) -> list[Finding]:
    """A finding for each entry that fits the versions after the run.

    `wanted`: versions that the run installs; "" for a version that only the repository knows. An
    entry is a blocker only if the run creates its combination. Example: an entry about driver 570
    and MIG blocks the installation of 570.148.08, and warns on a host that has it already.
    """
    after = components_after(installed, wanted)
    return [
        _finding(entry, after, created=not entry.fits(installed))
        for entry in table.combinations
        if entry.fits(after)
    ]


def components_after(installed: Components, wanted: Components) -> Components:
    """The components of a host or cluster after the run."""
    return Components(
        {**installed.versions, **wanted.versions},
        installed.traits | wanted.traits,
        installed.distribution or wanted.distribution,
    )


def _finding(entry: Combination, found: Components, *, created: bool) -> Finding:
    named = ", ".join(f"{name} {found.versions[name]}" for name in entry.versions)
    blocks = entry.severity is Severity.BLOCKER
    kind = WOULD_BE_BAD if blocks and created else KNOWN_BAD
    return kind(
        severity=None if blocks else entry.severity,
        versions=named,
        happens=entry.happens,
        id=entry.id,
        remedy=entry.remedy,
        source=entry.source,
    )
