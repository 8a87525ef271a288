"""The rows of a fleet: the state of each host, and the notes about it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Literal, get_args

from gpufleet.core.accepted import NOTHING_ACCEPTED, AcceptedFindings, split_accepted
from gpufleet.core.exit_status import ExitStatus
from gpufleet.core.findings import Finding, Severity
from gpufleet.facts.model import NodeFacts
from gpufleet.host.findings import SAME_MACHINE
from gpufleet.node.settings import NodeSettings
from gpufleet.packages.logins import Logins
from gpufleet.role.place import NO_PLACE, Place

Flag = Literal[
    "unreachable",
    "no-sudo",
    "unreadable",
    "blocked",
    "gpu-fault",
    "upgrade",
    "drift",
    "reboot",
    "vulnerable",
    "end-of-life",
    "version",
    "settings",
    "outlier",
    "busy",
]
FLAGS: tuple[Flag, ...] = get_args(Flag)  # in the order in which they are shown
MEANINGS: Mapping[Flag, str] = {
    "unreachable": "no connection",
    "no-sudo": "commands cannot run as root",
    "unreadable": "its answer cannot be read",
    "blocked": "gpufleet apply would stop on the host",
    "gpu-fault": "a GPU is missing or does not respond, or its driver is not loaded",
    "upgrade": "in an upgrade that has not ended",
    "drift": "differs from its settings",
    "reboot": "an installed driver or kernel is not in use yet",
    "vulnerable": "has known vulnerabilities",
    "end-of-life": "gets no fixes any more",
    "version": "another version is selected or available, or versions do not fit together",
    "settings": "data in the inventory has no effect, such as a misspelt key",
    "outlier": "differs from most hosts with the same GPUs",
    "busy": "another run or a package manager is active",
}


@dataclass(frozen=True, slots=True)
class SeenHost:
    """A host as it was read, with everything that its plan depends on."""

    name: str
    groups: tuple[str, ...] = ()
    facts: NodeFacts | None = None
    problem: Finding | None = None  # why there are no facts
    settings: NodeSettings | None = None
    problems: tuple[Finding, ...] = ()  # of its settings and data
    logins: Mapping[str, Logins] = field(default_factory=dict)
    place: Place = NO_PLACE
    accepted: AcceptedFindings = NOTHING_ACCEPTED
    data: Mapping[str, str] = field(default_factory=dict)  # of the inventory, without secrets


@dataclass(frozen=True, slots=True)
class Note:
    """One flag of a host, and the finding that explains it."""

    flag: Flag
    finding: Finding


def flags_of(notes: Iterable[Note]) -> tuple[Flag, ...]:
    own = {note.flag for note in notes}
    return tuple(flag for flag in FLAGS if flag in own)


@dataclass(frozen=True, slots=True)
class Row:
    """One host. A version is "" if the component is missing or the host was not read."""

    name: str
    groups: tuple[str, ...] = ()
    models: tuple[tuple[str, int], ...] = ()  # model, number of GPUs
    layout: str = ""  # of MIG: 1g.10gb:7; "" without MIG devices
    gres: tuple[tuple[str, int], ...] = ()  # types of GPUs and MIG devices as Slurm names them
    driver: str = ""  # loaded, else installed
    loaded: bool = False
    toolkit: str = ""
    runtimes: tuple[tuple[str, str], ...] = ()  # name, version of those that run
    kernel: str = ""
    os: str = ""  # NVIDIA's code: ubuntu2204
    reached: bool = True
    steps: tuple[str, ...] = ()  # of its plan
    notes: tuple[Note, ...] = ()
    accepted: tuple[Finding, ...] = ()  # findings that the inventory accepts
    data: Mapping[str, str] = field(default_factory=dict)  # of the inventory, without secrets

    @property
    def gpus(self) -> int:
        return sum(number for _, number in self.models)

    @property
    def is_second_name(self) -> bool:
        """True if an earlier host of the inventory is the same machine."""
        return any(note.finding.code == SAME_MACHINE.code for note in self.notes)

    @property
    def model(self) -> str:
        """The models of its GPUs without their numbers: "A100 + T4", or "" without GPUs."""
        return " + ".join(model for model, _ in self.models)

    @property
    def gpu_text(self) -> str:
        gpus = " + ".join(f"{number} x {model}" for model, number in self.models)
        return f"{gpus}, MIG {self.layout}" if self.layout else gpus

    @property
    def driver_text(self) -> str:
        """The version of the driver, marked if it is not loaded."""
        return self.driver if self.loaded or not self.driver else f"{self.driver} (not loaded)"

    @property
    def runtime_text(self) -> str:
        return ", ".join(f"{name} {version}".strip() for name, version in self.runtimes)

    @property
    def flags(self) -> tuple[Flag, ...]:
        return flags_of(self.notes)

    @property
    def texts(self) -> tuple[str, ...]:
        """The values that a table shows, besides the name and the flags."""
        found = (self.gpu_text, self.driver_text, self.toolkit, self.runtime_text)
        return (*found, self.kernel, self.os)

    def accepting(self, accepted: AcceptedFindings, today: date) -> Row:
        """The row without the notes, and so the flags, that the inventory accepts."""
        shown: list[Note] = []
        hidden: list[Finding] = []
        for note in self.notes:
            kept, gone = split_accepted([note.finding], accepted, today)
            shown += [replace(note, finding=finding) for finding in kept]
            hidden += gone
        return replace(self, notes=tuple(shown), accepted=tuple(hidden))

    def with_notes(self, notes: tuple[Note, ...]) -> Row:
        return replace(self, notes=(*self.notes, *notes))


@dataclass(frozen=True, slots=True)
class ClusterRow:
    """One cluster, according to its plan."""

    name: str
    reached: bool = True
    releases: tuple[tuple[str, str], ...] = ()  # gpufleet's: Helm release, version of its chart
    steps: tuple[str, ...] = ()  # of its plan
    notes: tuple[Note, ...] = ()

    @property
    def flags(self) -> tuple[Flag, ...]:
        return flags_of(self.notes)

    @property
    def releases_text(self) -> str:
        return "\n".join(f"{name} {version}" for name, version in self.releases)


@dataclass(frozen=True, slots=True)
class FleetStatus:
    """All hosts and all clusters of the inventory. Clusters are not hosts."""

    inventory: str
    rows: tuple[Row, ...]
    clusters: tuple[ClusterRow, ...] = ()

    @property
    def all_rows(self) -> tuple[Row | ClusterRow, ...]:
        return (*self.rows, *self.clusters)

    @property
    def unclear(self) -> bool:
        """True if at least one host or cluster cannot be compared with its settings."""
        return any(not row.reached or "blocked" in row.flags for row in self.all_rows)

    @property
    def is_silent(self) -> bool:
        """True if no finding requires action, so that --quiet prints nothing."""
        notes = [note for row in self.all_rows for note in row.notes]
        return all(note.finding.severity is Severity.INFO for note in notes)

    def exit_status(self, fail_on: Collection[Flag] = (), *, drift: bool) -> ExitStatus:
        """The exit status; with `drift`, like that of terraform's -detailed-exitcode."""
        if not all(row.reached for row in self.all_rows) or (drift and self.unclear):
            return ExitStatus.FAILED
        found = {flag for row in self.all_rows for flag in row.flags}
        if found.intersection(fail_on):
            return ExitStatus.FAILED
        return ExitStatus.DRIFT if drift and "drift" in found else ExitStatus.CONVERGED
