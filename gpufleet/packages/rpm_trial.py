"""Parses the output of a simulated yum or dnf transaction. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from gpufleet.core.findings import Finding
from gpufleet.core.visible import Lines
from gpufleet.packages import findings
from gpufleet.packages.transaction import Transaction, lacks

HEADING = re.compile(
    r"^(?:> )*(?P<verb>[A-Z][a-z]+)(?: [a-z/ ]+)?:$"
)  # "Removing for dependencies:"
ENTRY = re.compile(r"^ (?P<name>[^\s:]+)(?:\s|$)")
REPLACED = re.compile(r"^ {2,}replacing +(?P<name>\S+)\.[^\s.]+ ")
UNKNOWN = re.compile(
    r"^(?:> )*(?:No package (?P<yum>\S+) available"
    r"|(?:Error: )?Unable to find a match: (?P<dnf>.+)"
    r"|No match for argument: (?P<argument>\S+))"
)
PROBLEM = re.compile(
    r"^(?:> )*(?:Error:\s*(?!\s|Operation aborted|Unable to find a match)| Problem(?: \d+)?: )"
    r"(?P<text>.*)$"
)
KERNEL = re.compile(r"kernel[\d.]*(?:-(?:uek(?:64k)?|rt|64k|lt|ml|plus|debug))*(?:-core)?")
REMOVALS = ("Removing", "Erasing", "Obsoleting")
SHOWN_LINES = 6  # of the package manager's errors


@dataclass(frozen=True, slots=True)
class Trial:
    """What a transaction would do, or why it would fail."""

    removed: tuple[str, ...]  # names, in the order of the table
    added: tuple[str, ...]  # names that would be newly installed
    kernels: tuple[str, ...]  # kernels that would be installed
    unknown: tuple[str, ...]  # arguments without a package in any repository
    problem: str  # "" if the transaction would succeed


def read_trial(lines: Iterable[str]) -> Trial:
    """Parse the table and the messages of `yum --assumeno`, of yum 3 and dnf 4."""
    removed: list[str] = []
    added: list[str] = []
    unknown: list[str] = []
    verb = ""
    every = list(lines)
    for line in every:
        heading, entry, replaced = HEADING.match(line), ENTRY.match(line), REPLACED.match(line)
        if heading:
            verb = heading["verb"]
        elif line.startswith("Transaction Summary"):
            verb = ""
        elif replaced:
            removed.append(replaced["name"])
        elif entry and verb in REMOVALS:
            removed.append(entry["name"])
        elif entry and verb == "Installing":
            added.append(entry["name"])
        unknown += _unknown(line)
    return Trial(
        tuple(dict.fromkeys(removed)),
        tuple(dict.fromkeys(added)),
        tuple(name for name in added if KERNEL.fullmatch(name)),
        tuple(dict.fromkeys(unknown)),
        _problem(every),
    )


def _unknown(line: str) -> list[str]:
    match = UNKNOWN.match(line)
    return (match["yum"] or match["argument"] or match["dnf"]).split() if match else []


def _problem(lines: list[str]) -> str:
    """The first error and the lines after it that explain it."""
    for position, line in enumerate(lines):
        match = PROBLEM.match(line)
        if match:
            said = [match["text"], *lines[position + 1 : position + SHOWN_LINES]]
            return Lines("\n".join(text.strip() for text in said if text.strip(" >")))
    return ""


def _typed(plan: Transaction, manager: str) -> str:
    """The trial as a person types it: the shell of yum and dnf removes and installs at once."""
    wanted = [f"{name}-{version.split(':')[-1]}" for name, version in plan.install]
    lines = ["remove " + " ".join(plan.remove)] if plan.remove else []
    lines += ["install " + " ".join([*wanted, *plan.companions, *plan.prerequisites]), "run"]
    typed = "\\n".join(lines)
    return f"printf '{typed}\\n' | {manager} --assumeno --disableplugin=versionlock shell"


def refusal(
    trial: Trial, plan: Transaction, family_patterns: Iterable[str], manager: str
) -> Finding | None:
    """Why `plan` must not run: it fails, or changes more packages than planned."""
    patterns = [re.compile(pattern) for pattern in family_patterns]
    others = [
        name
        for name in trial.removed
        if name not in plan.remove and not any(pattern.fullmatch(name) for pattern in patterns)
    ]
    others += [f"{name} (a new kernel)" for name in trial.kernels]
    if others:
        return findings.UNEXPECTED_REMOVAL(
            packages=", ".join(others), command=_typed(plan, manager)
        )
    lacking = [name for name in trial.unknown if name in plan.prerequisites]
    if lacking:
        return lacks(lacking)
    if trial.problem:
        return findings.TRANSACTION_REFUSED(manager=manager, problem=trial.problem)
    return None
