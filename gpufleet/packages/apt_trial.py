"""Reads what `apt-get -s` says that a transaction would do. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from gpufleet.core.findings import Finding
from gpufleet.core.visible import Lines
from gpufleet.packages import findings
from gpufleet.packages.transaction import Transaction, unexpected_changes

NOWHERE = re.compile(
    r"^E: (?:Unable to locate package (?P<unknown>\S+)"
    r"|Package '?(?P<excluded>[^\s']+)'? has no installation candidate)"
)
COMES = re.compile(r"^Inst (?P<name>[^\s:]+)(?::\S+)? \(")  # another version stands in brackets
HEADERS = re.compile("linux-headers-")
SHOWN_LINES = 8  # of what apt says is wrong


def refusal(
    simulation: Sequence[str], plan: Transaction, family_patterns: Iterable[str], command: str
) -> Finding | None:
    """Why `plan` must not be carried out: it takes or brings more than planned, or cannot be.

    `command` is the simulation as a person would type it.
    """
    unexpected = unexpected_changes(simulation, plan, family_patterns)
    if unexpected:
        return findings.UNEXPECTED_REMOVAL(packages=", ".join(unexpected), command=command)
    matches = [match for line in simulation if (match := NOWHERE.match(line))]
    names = dict.fromkeys(match["unknown"] or match["excluded"] for match in matches)
    lacking = [name for name in names if name in plan.prerequisites]
    if lacking:
        headers = any(HEADERS.match(name) for name in lacking)
        kind = findings.HEADERS_MISSING if headers else findings.PREREQUISITES_MISSING
        return kind(packages=", ".join(lacking))
    problem = _problem(simulation)
    return findings.TRANSACTION_REFUSED(manager="apt-get", problem=problem) if problem else None


def brought(simulation: Iterable[str]) -> tuple[str, ...]:
    """Names of the packages that would come anew; what moves to another version does not."""
    matches = (COMES.match(line) for line in simulation)
    return tuple(dict.fromkeys(match["name"] for match in matches if match))


def _problem(lines: Sequence[str]) -> str:
    """apt's errors, and the dependencies that it lists before them."""
    if not any(line.startswith("E: ") for line in lines):
        return ""
    said = [line.strip() for line in lines if line.startswith("E: ") or " : " in line]
    return Lines("\n".join(said[:SHOWN_LINES]))
