"""Parses the output of `apt-get -s` for a transaction. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from gpufleet.core.findings import Finding
from gpufleet.core.visible import Lines
from gpufleet.packages import findings
from gpufleet.packages.transaction import Transaction, lacks, unexpected_changes

NOWHERE = re.compile(
    r"^E: (?:Unable to locate package (?P<unknown>\S+)"
    r"|Package '?(?P<excluded>[^\s']+)'? has no installation candidate)"
)
COMES = re.compile(r"^Inst (?P<name>[^\s:]+)(?::\S+)? \(")  # an installed version is in brackets
SHOWN_LINES = 8  # of apt's errors


def refusal(
    simulation: Sequence[str], plan: Transaction, family_patterns: Iterable[str], command: str
) -> Finding | None:
    """Why `plan` must not run: it fails, or changes more packages than planned.

    `command`: the simulation, for the user to repeat.
    """
    unexpected = unexpected_changes(simulation, plan, family_patterns)
    if unexpected:
        return findings.UNEXPECTED_REMOVAL(packages=", ".join(unexpected), command=command)
    matches = [match for line in simulation if (match := NOWHERE.match(line))]
    names = dict.fromkeys(match["unknown"] or match["excluded"] for match in matches)
    lacking = [name for name in names if name in plan.prerequisites]
    if lacking:
        return lacks(lacking)
    problem = _problem(simulation)
    return findings.TRANSACTION_REFUSED(manager="apt-get", problem=problem) if problem else None


def added(simulation: Iterable[str]) -> tuple[str, ...]:
    """Names of packages that would be newly installed, without up- and downgrades."""
    matches = (COMES.match(line) for line in simulation)
    return tuple(dict.fromkeys(match["name"] for match in matches if match))


def _problem(lines: Sequence[str]) -> str:
    """apt's errors, and the dependencies listed before them."""
    if not any(line.startswith("E: ") for line in lines):
        return ""
    said = [line.strip() for line in lines if line.startswith("E: ") or " : " in line]
    return Lines("\n".join(said[:SHOWN_LINES]))
