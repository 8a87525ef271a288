"""Types of the doctor: checks and steps as data, results and verdicts. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from gpufleet.core.entries import Entry, Sourced, entry_loader

if TYPE_CHECKING:  # the prolog of a batch system has no use for plans
    from gpufleet.status.detail import Detail


class Verdict(str, Enum):
    """The result of a check or a machine. UNKNOWN: it could not be read, so it does not pass."""

    PASS = "PASS"
    INFO = "INFO"  # of a check: something to know; its machine passes
    WARNING = "WARNING"
    UNKNOWN = "UNKNOWN"
    CRITICAL = "CRITICAL"

    @property
    def rank(self) -> int:
        """The place from PASS, 0, to CRITICAL."""
        return RANKS.index(self)

    @property
    def fails(self) -> bool:
        return self.rank >= Verdict.WARNING.rank


RANKS = tuple(Verdict)  # from the best to the worst


def worst_verdict(verdicts: Iterable[Verdict]) -> Verdict:
    """The worst of some verdicts, PASS without one. Infos do not count."""
    found = max(verdicts, key=lambda each: each.rank, default=Verdict.PASS)
    return found if found.fails else Verdict.PASS


class SafeFix(Entry):
    """What `--fix` runs for a step. steps.yaml explains the fields."""

    command: str
    service_command: str = ""
    units: dict[str, str] = Field(default_factory=dict)
    paths: tuple[str, ...] = ()
    images: tuple[str, ...] = ()


class NextStep(Entry):
    """One next step. steps.yaml explains the fields."""

    does: str
    command: str
    runs_on: Literal["host", "controller"]
    interrupts: str
    drains: bool = False
    source: str = ""
    fix: SafeFix | None = None


class NextSteps(Entry):
    """steps.yaml"""

    steps: dict[str, NextStep]


class DoctorCheck(Sourced):
    """One check. checks.yaml explains the fields."""

    id: str = Field(pattern=r"(host|gpu|chain|cluster)\.[a-z0-9_]+")
    title: str
    reads: str
    fails: str
    threshold: str = ""
    severity: Verdict
    since: str = ""
    after: tuple[str, ...] = ()
    codes: tuple[str, ...] = ()
    steps: tuple[str, ...]


class DoctorChecks(Entry):
    """checks.yaml"""

    about_changes: dict[str, str]
    by_hand: dict[str, str]
    checks: tuple[DoctorCheck, ...]


class AskedCgroups(Sourced):
    """cgroups.yaml: the first versions, of the kubelet and by runtime."""

    kubelet: str
    runtimes: dict[str, str]


load_asked_cgroups = entry_loader(AskedCgroups, "doctor/cgroups")
load_steps = entry_loader(NextSteps, "doctor/steps")
load_checks = entry_loader(DoctorChecks, "doctor/checks")


@dataclass(frozen=True, slots=True)
class Link:
    """The reading of a check. `fault`: a sentence, or "" if all is well."""

    read: str
    fault: str = ""
    unit: str = ""  # systemd unit to start or to look at
    verdict: Verdict | None = None  # of the fault, if not the severity of the check
    place: str = ""  # NAMESPACE/NAME of the pod or Service that the fault names
    steps: tuple[str, ...] = ()  # next steps, if not those of the check
    path: str = ""  # file that a next step moves


@dataclass(frozen=True, slots=True)
class CheckOutcome:
    """The outcome of one check on a host or on one of its GPUs."""

    check: str
    verdict: Verdict
    read: str = ""
    cause: str = ""  # sentences, "" if it passes
    remedy: str = ""  # of the finding, if it has one
    code: str = ""  # of the finding
    gpu: str = ""  # PCI address, "" for the host
    unit: str = ""
    place: str = ""  # as in Link
    path: str = ""
    steps: tuple[str, ...] = ()
    follows: str = ""  # the check whose failure is the cause of this one


@dataclass(frozen=True, slots=True)
class SubjectVerdict:
    """The verdict on a host or a cluster, with all its results."""

    name: str
    results: tuple[CheckOutcome, ...]
    kubelet: bool = False  # a node of Kubernetes
    fixable: frozenset[str] = frozenset()  # failed checks that `--fix` can fix here
    login: str = ""  # the words by which ssh reaches it, "" for its name alone

    @property
    def verdict(self) -> Verdict:
        return worst_verdict(result.verdict for result in self.results)

    @property
    def causes(self) -> tuple[CheckOutcome, ...]:
        """The failed checks that follow from no other one, the worst first. A cause is as bad as
        the worst of its consequences."""
        found = (
            replace(
                each,
                verdict=worst_verdict(found.verdict for found in (each, *self._consequences(each))),
            )
            for each in self.results
            if not each.follows and (each.verdict.fails or self._consequences(each))
        )
        return tuple(sorted(found, key=lambda each: -each.verdict.rank))

    def _consequences(self, cause: CheckOutcome) -> list[CheckOutcome]:
        found = [each for each in self.results if each.follows == cause.check]
        return [each for each in found if not (cause.gpu and each.gpu) or each.gpu == cause.gpu]

    def consequences_of(self, cause: CheckOutcome) -> tuple[str, ...]:
        """The checks that fail because of a cause, each once."""
        return tuple(dict.fromkeys(each.check for each in self._consequences(cause)))


@dataclass(frozen=True, slots=True)
class JudgedFleet:
    """The verdicts on hosts and clusters. `details`: the hosts in depth, () without a plan."""

    inventory: str
    hosts: tuple[SubjectVerdict, ...]
    details: tuple[Detail, ...] = ()
    clusters: tuple[SubjectVerdict, ...] = ()

    @property
    def every(self) -> tuple[SubjectVerdict, ...]:
        return (*self.hosts, *self.clusters)

    @property
    def verdict(self) -> Verdict:
        """The worst of all."""
        return worst_verdict(each.verdict for each in self.every)


Readings = Mapping[str, Link | None]  # check -> what it read, None if it does not apply
