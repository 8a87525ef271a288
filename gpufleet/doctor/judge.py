"""Judges hosts and clusters by facts and findings: verdicts, each with its cause. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace

from gpufleet.core.findings import Finding
from gpufleet.doctor.chain import read_chain
from gpufleet.doctor.container_links import unit_of_runtime
from gpufleet.doctor.gpus import judge_gpus
from gpufleet.doctor.models import (
    CheckOutcome,
    DoctorCheck,
    Link,
    Readings,
    SubjectVerdict,
    Verdict,
    load_checks,
)
from gpufleet.driver.health import assess_gpu_health
from gpufleet.facts.health import GpuHealth
from gpufleet.facts.model import NodeFacts
from gpufleet.host.findings import NOT_ROOT

ANSWERS, BLOCKERS = ".answers", ".plan"  # checks of the unread, and of blockers of no other check
OF_CLUSTERS = "cluster."
OF_RUNTIMES = ("chain.nvidia_runtime", "chain.cgroups")  # their findings name no unit
APPLY = "apply"  # the step that does not repair what is left to a person
NO_READINGS: Readings = {}
BUSY, PACKAGES = "host.busy", "host.packages"  # checks of changes by other programs


def judge_host(
    name: str,
    facts: NodeFacts | None,
    findings: Collection[Finding],
    checks: Sequence[DoctorCheck],
    peers: Sequence[GpuHealth] = (),
    scrapes: Readings = NO_READINGS,
) -> SubjectVerdict:
    """The verdict on a host. `facts`: None if it was not read; `findings`: of its state and plan;
    `checks`: those that count; `peers`: GPUs of other hosts; `scrapes`: readings by Prometheus."""
    if facts is None or not facts.privileged:
        return unread_verdict(name, findings, "host", "The host was not read.")
    own = [check for check in checks if not check.id.startswith(OF_CLUSTERS)]
    of_gpus = judge_gpus(facts.health, peers, {check.id for check in own})
    found = [*of_gpus, *judge_checks(own, {**read_chain(facts), **scrapes}, findings)]
    found = [_with_runtime(each, facts) for each in found]
    if facts.lock_holder:
        found = [_unfinished(each) for each in found]
    return SubjectVerdict(name, tuple(fold_consequences(found, own)), kubelet=facts.kubelet)


def _with_runtime(outcome: CheckOutcome, facts: NodeFacts) -> CheckOutcome:
    """The outcome of a finding about a runtime with the unit of that."""
    if outcome.unit or outcome.check not in OF_RUNTIMES:
        return outcome
    return replace(outcome, unit=unit_of_runtime(facts))


def _unfinished(outcome: CheckOutcome) -> CheckOutcome:
    """The outcome while a package manager works: it leaves packages half installed until it
    ends."""
    if outcome.check != PACKAGES or not outcome.verdict.fails:
        return outcome
    return replace(outcome, verdict=Verdict.INFO)


def judge_state(
    name: str, facts: NodeFacts | Finding, expected: int | None, checks: Sequence[DoctorCheck]
) -> SubjectVerdict:
    """The verdict on a host by its state alone: no catalog, no plan, no other host. `facts`: or the
    reason why it was not read; `expected`: number of GPUs that the inventory names."""
    if isinstance(facts, Finding):
        return judge_host(name, None, [facts], checks)
    if not facts.privileged:
        return judge_host(name, None, [NOT_ROOT()], checks)
    return judge_host(name, facts, assess_gpu_health(facts, expected, repairs=False).all, checks)


def unread_verdict(name: str, findings: Iterable[Finding], kind: str, text: str) -> SubjectVerdict:
    """The verdict on a host or cluster that was not read, whichever checks count."""
    check = next(each for each in load_checks().checks if each.id == kind + ANSWERS)
    found = sorted(findings, key=lambda each: (each.code not in check.codes, not each.blocks))
    why = next(iter(found), None)
    result = CheckOutcome(check.id, check.severity, cause=text, steps=check.steps)
    if why:
        result = replace(result, cause=why.message, remedy=why.remedy, code=why.code)
    return SubjectVerdict(name, (result,))


def judge_checks(
    checks: Iterable[DoctorCheck], readings: Readings, findings: Collection[Finding]
) -> list[CheckOutcome]:
    """The outcomes of the checks that apply, by readings and findings."""
    known = {code for check in load_checks().checks for code in check.codes}
    return [each for check in checks for each in _results(check, readings, findings, known)]


def _results(
    check: DoctorCheck, readings: Readings, findings: Iterable[Finding], known: Collection[str]
) -> Iterator[CheckOutcome]:
    """The results of one check: a failure for each of its findings, or the reading."""
    reading = readings.get(check.id)
    found = [each for each in findings if _belongs(each, check, known)]
    if found:
        yield from (_of_finding(check, each, reading or Link("")) for each in found)
    elif reading is not None:
        yield _of_reading(check, reading)


def _belongs(finding: Finding, check: DoctorCheck, known: Collection[str]) -> bool:
    if check.id.endswith(BLOCKERS):
        return finding.blocks and finding.code not in known
    return finding.code in check.codes


def _of_finding(check: DoctorCheck, finding: Finding, reading: Link) -> CheckOutcome:
    verdict = Verdict(check.severity)
    if finding.code in load_checks().about_changes:
        verdict = Verdict.INFO
    elif finding.blocks and verdict is not Verdict.UNKNOWN:
        verdict = Verdict.CRITICAL
    steps = reading.steps or check.steps
    if finding.code in load_checks().by_hand:
        steps = tuple(step for step in steps if step != APPLY)
    return CheckOutcome(
        check.id,
        verdict,
        reading.read,
        finding.message,
        finding.remedy,
        finding.code,
        unit=reading.unit,
        place=reading.place,
        path=reading.path,
        steps=steps,
    )


def _of_reading(check: DoctorCheck, reading: Link) -> CheckOutcome:
    if not reading.fault:
        return CheckOutcome(check.id, Verdict.PASS, reading.read)
    return CheckOutcome(
        check.id,
        reading.verdict or check.severity,
        reading.read,
        reading.fault,
        unit=reading.unit,
        place=reading.place,
        path=reading.path,
        steps=reading.steps or check.steps,
    )


def fold_consequences(
    outcomes: Sequence[CheckOutcome], checks: Sequence[DoctorCheck]
) -> list[CheckOutcome]:
    """The outcomes. A failure follows from the first failed check that its check comes after, also
    through checks that read nothing, but not through one that passes. A program
    that changes the host now is a cause, too."""
    after = {check.id: check.after for check in checks}
    passed = {each.check for each in outcomes if each.verdict is Verdict.PASS}
    failed: dict[str, set[str]] = defaultdict(set)  # check -> GPUs, "" for the host
    for each in outcomes:
        if each.verdict.fails or (each.check == BUSY and each.cause):
            failed[each.check].add(each.gpu)

    def cause_of(check: str, gpu: str) -> str:
        for earlier in after.get(check, ()):
            broken = failed.get(earlier, set())
            if broken and (not gpu or broken & {gpu, ""}):
                return cause_of(earlier, gpu) or earlier
            if not broken and earlier not in passed and (first := cause_of(earlier, gpu)):
                return first
        return ""

    return [
        replace(each, follows=cause_of(each.check, each.gpu)) if each.verdict.fails else each
        for each in outcomes
    ]
