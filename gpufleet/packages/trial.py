"""Interprets a simulated transaction, and says why it must not run. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from gpufleet.core.findings import Finding
from gpufleet.core.visible import Lines
from gpufleet.packages import findings
from gpufleet.packages.transaction import PackageTransaction, missing_prerequisites

NOWHERE = re.compile(
    r"^E: (?:Unable to locate package (?P<unknown>\S+)"
    r"|Package '?(?P<excluded>[^\s']+)'? has no installation candidate)"
)
APT_INSTALLS = re.compile(r"^Inst (?P<name>[^\s:]+)")
COMES = re.compile(r"^Inst (?P<name>[^\s:]+)(?::\S+)? \(")  # an installed version is in brackets
NEW_KERNEL = re.compile(r"linux-image-.+|(proxmox|pve)-kernel-.+")
APT_LINES, RPM_LINES = 8, 6  # lines shown of a package manager's errors
# "Removing for dependencies:"
HEADING = re.compile(r"^(?:> )*(?P<verb>[A-Z][a-z]+)(?: [a-z/ ]+)?:$")
ENTRY = re.compile(r"^ (?P<name>[^\s:]+)(?:\s|$)")
YUM_REPLACES = re.compile(r"^ {2,}replacing +(?P<name>\S+)\.[^\s.]+ ")
UNKNOWN_PACKAGE = re.compile(
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
MOVES = ("Installing", "Updating", "Upgrading", "Downgrading", "Reinstalling")
SIZE = re.compile(r"^(?:> )*Total (?P<kind>download )?size: (?P<number>[\d.]+) ?(?P<unit>[kMGT]?)")
URI = re.compile(r"^'[^']+' \S+ (?P<bytes>\d+) ")  # apt-get --print-uris


def apt_refusal(
    simulation: Sequence[str], wanted: PackageTransaction, command: str
) -> Finding | None:
    """Why apt must not run: it fails, or changes more packages than planned.

    `simulation`: the lines of `apt-get -s`; `command`: the same command, for the user to repeat.
    """
    unexpected = _unexpected_changes(simulation, wanted)
    if unexpected:
        return findings.UNEXPECTED_REMOVAL(packages=", ".join(unexpected), command=command)
    matches = [match for line in simulation if (match := NOWHERE.match(line))]
    names = dict.fromkeys(match["unknown"] or match["excluded"] for match in matches)
    lacking = [name for name in names if name in wanted.prerequisites]
    if lacking:
        return missing_prerequisites(lacking)
    if not any(line.startswith("E: ") for line in simulation):
        return None
    # apt's errors, and the dependencies listed before them
    said = [line.strip() for line in simulation if line.startswith("E: ") or " : " in line]
    problem = Lines("\n".join(said[:APT_LINES]))
    return findings.TRANSACTION_REFUSED(manager="apt-get", problem=problem)


def _unexpected_changes(simulation: Iterable[str], wanted: PackageTransaction) -> list[str]:
    """Unplanned changes that apt would make: removals and new kernels."""
    unexpected = []
    for line in simulation:
        verb, _, rest = line.partition(" ")
        name = rest.split(" ", 1)[0].split(":")[0]
        if verb == "Remv" and not wanted.may_remove(name):
            unexpected.append(name)
        if verb == "Inst" and NEW_KERNEL.fullmatch(name):
            unexpected.append(f"{name} (a new kernel)")
    return unexpected


def apt_added(simulation: Iterable[str]) -> tuple[str, ...]:
    """Names of packages that apt would newly install, without upgrades and downgrades."""
    matches = (COMES.match(line) for line in simulation)
    return tuple(dict.fromkeys(match["name"] for match in matches if match))


def apt_moved(simulation: Iterable[str]) -> tuple[str, ...]:
    """Names of packages that apt would install or move to another version."""
    matches = (APT_INSTALLS.match(line) for line in simulation)
    return tuple(dict.fromkeys(match["name"] for match in matches if match))


def apt_download(uris: Iterable[str]) -> int:
    """Bytes of the packages that `apt-get --print-uris` lists: the ones missing on the host."""
    return sum(int(match["bytes"]) for match in map(URI.match, uris) if match)


@dataclass(frozen=True, slots=True)
class RpmTrial:
    """The changes that yum or dnf would make, or why it would fail."""

    removed: tuple[str, ...]  # names, in the order of the table
    added: tuple[str, ...]  # names that would be newly installed
    kernels: tuple[str, ...]  # kernels that would be installed
    unknown: tuple[str, ...]  # arguments without a package in any repository
    problem: str  # "" if the transaction would succeed
    moved: tuple[str, ...] = ()  # names that would be installed, or get another version
    download: int | None = None  # bytes, rounded as the manager rounds them; None: not printed


def read_rpm_trial(lines: Iterable[str]) -> RpmTrial:
    """Parse the table and the messages of `yum --assumeno`, from yum 3 and dnf 4."""
    removed: list[str] = []
    added: list[str] = []
    moved: list[str] = []
    unknown: list[str] = []
    verb = ""
    every = list(lines)
    for line in every:
        heading, entry, replaced = HEADING.match(line), ENTRY.match(line), YUM_REPLACES.match(line)
        if heading:
            verb = heading["verb"]
        elif line.startswith("Transaction Summary"):
            verb = ""
        elif replaced:
            removed.append(replaced["name"])
        elif entry and verb in REMOVALS:
            removed.append(entry["name"])
        elif entry and verb in MOVES:
            moved.append(entry["name"])
            added += [entry["name"]] if verb == "Installing" else []
        if lacking := UNKNOWN_PACKAGE.match(line):
            unknown += (lacking["yum"] or lacking["argument"] or lacking["dnf"]).split()
    return RpmTrial(
        tuple(dict.fromkeys(removed)),
        tuple(dict.fromkeys(added)),
        tuple(name for name in added if KERNEL.fullmatch(name)),
        tuple(dict.fromkeys(unknown)),
        _problem(every),
        tuple(dict.fromkeys(moved)),
        _download(every),
    )


def _download(lines: Iterable[str]) -> int | None:
    """The bytes to download. If the host has all packages, only their size is printed."""
    sizes = [match for line in lines if (match := SIZE.match(line))]
    for size in sizes:
        if size["kind"]:
            factor: int = 1024 ** " kMGT".index(size["unit"] or " ")
            return round(float(size["number"]) * factor)
    return 0 if sizes else None


def _problem(lines: list[str]) -> str:
    """The first error and the lines after it that explain it."""
    for position, line in enumerate(lines):
        match = PROBLEM.match(line)
        if match:
            said = [match["text"], *lines[position + 1 : position + RPM_LINES]]
            return Lines("\n".join(text.strip() for text in said if text.strip(" >")))
    return ""


def rpm_refusal(trial: RpmTrial, wanted: PackageTransaction) -> Finding | None:
    """Why yum or dnf must not run: it fails, or changes more packages than planned."""
    others = [name for name in trial.removed if not wanted.may_remove(name)]
    others += [f"{name} (a new kernel)" for name in trial.kernels]
    if others:
        return findings.UNEXPECTED_REMOVAL(packages=", ".join(others), command=_typed(wanted))
    lacking = [name for name in trial.unknown if name in wanted.prerequisites]
    if lacking:
        return missing_prerequisites(lacking)
    if trial.problem:
        return findings.TRANSACTION_REFUSED(manager=wanted.manager, problem=trial.problem)
    return None


def _typed(wanted: PackageTransaction) -> str:
    """The trial as a command for people: the shell of yum and dnf removes and installs at once."""
    names = [f"{name}-{version.split(':')[-1]}" for name, version in wanted.install]
    lines = ["remove " + " ".join(wanted.remove)] if wanted.remove else []
    lines += ["install " + " ".join([*names, *wanted.companions, *wanted.prerequisites]), "run"]
    typed = "\\n".join(lines)
    return f"printf '{typed}\\n' | {wanted.manager} --assumeno --disableplugin=versionlock shell"
