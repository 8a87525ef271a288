"""Types of the doctor: checks and steps as data, results and verdicts. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Literal

from pydantic import Field, model_validator

from gpufleet.core.entries import Entry, Sourced, entry_loader


class Verdict(str, Enum):
    """What a check or a machine comes out as. UNKNOWN: it could not be read, which is no PASS."""

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


class NextStep(Entry):
    """One next step. steps.yaml explains the fields."""

    does: str
    command: str
    runs_on: Literal["host", "controller"]
    interrupts: str
    source: str = ""


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
    severity: Literal[Verdict.INFO, Verdict.WARNING, Verdict.UNKNOWN, Verdict.CRITICAL]
    since: str = ""
    after: tuple[str, ...] = ()
    codes: tuple[str, ...] = ()
    steps: tuple[str, ...]


class DoctorChecks(Entry):
    """checks.yaml"""

    about_changes: dict[str, str]
    checks: tuple[DoctorCheck, ...]

    @model_validator(mode="after")
    def _check(self) -> DoctorChecks:
        known: set[str] = set()
        for check in self.checks:
            if check.id in known or not known.issuperset(check.after):
                raise ValueError(f"{check.id} is there twice, or comes before a check of `after`")
            if unknown := set(check.steps) - load_steps().steps.keys():
                raise ValueError(f"{check.id} names unknown steps: {', '.join(sorted(unknown))}")
            known.add(check.id)
        return self


load_steps = entry_loader(NextSteps, "doctor/steps")
load_checks = entry_loader(DoctorChecks, "doctor/checks")


@dataclass(frozen=True, slots=True)
class Reading:
    """What a check read. `fault`: a sentence if it is not as it should be, else ""."""

    read: str
    fault: str = ""
    unit: str = ""  # systemd unit to start or to look at
    verdict: Verdict | None = None  # of the fault, if not the severity of the check


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
    steps: tuple[str, ...] = ()
    follows: str = ""  # the check whose failure is the cause of this one


@dataclass(frozen=True, slots=True)
class SubjectVerdict:
    """The verdict on a host or a cluster, with all its results."""

    name: str
    results: tuple[CheckOutcome, ...]

    @property
    def verdict(self) -> Verdict:
        return worst_verdict(result.verdict for result in self.results)

    @property
    def causes(self) -> tuple[CheckOutcome, ...]:
        """The failed checks that follow from no other one, the worst first. A cause is as bad as
        the worst of its consequences."""
        found = (
            replace(each, verdict=worst_verdict([each.verdict, *self._consequences(each)]))
            for each in self.results
            if each.verdict.fails and not each.follows
        )
        return tuple(sorted(found, key=lambda each: -each.verdict.rank))

    def _consequences(self, cause: CheckOutcome) -> list[Verdict]:
        return [each.verdict for each in self.results if each.follows == cause.check]

    def consequences_of(self, cause: CheckOutcome) -> tuple[str, ...]:
        """The checks that fail because of a cause, each once."""
        found = (each.check for each in self.results if each.follows == cause.check)
        return tuple(dict.fromkeys(found))

    def of_gpu(self, slot: str) -> Verdict:
        """The verdict on one GPU."""
        return worst_verdict(each.verdict for each in self.results if each.gpu == slot)


Readings = Mapping[str, Reading | None]  # check -> what it read, None if it does not apply
