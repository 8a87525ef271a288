"""Judges hosts and clusters by facts and findings: verdicts, each with its cause. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace

from gpufleet.core.findings import Finding
from gpufleet.doctor.chain import read_chain
from gpufleet.doctor.models import (
    CheckOutcome,
    DoctorCheck,
    Reading,
    Readings,
    SubjectVerdict,
    Verdict,
    load_checks,
)
from gpufleet.driver.health import assess_gpu_health
from gpufleet.facts.model import NodeFacts
from gpufleet.host.findings import NOT_ROOT
from gpufleet.status.models import ClusterRow, SeenHost

ANSWERS, BLOCKERS = ".answers", ".plan"  # checks of the unread, and of blockers of no other check
OF_CLUSTERS = "cluster."


def judge_host(
    name: str,
    facts: NodeFacts | None,
    findings: Collection[Finding],
    checks: Sequence[DoctorCheck],
    hardware: Iterable[CheckOutcome] = (),
) -> SubjectVerdict:
    """The verdict on a host. `facts`: None if it was not read; `findings`: of its state and plan;
    `checks`: those that count; `hardware`: results of its GPUs."""
    own = [check for check in checks if not check.id.startswith(OF_CLUSTERS)]
    if facts is None or not facts.privileged:
        return _unread(name, findings, "host", "The host was not read.")
    results = _judge(own, read_chain(facts), findings)
    return SubjectVerdict(name, tuple(fold_consequences([*results, *hardware], own)))


def judge_state(host: SeenHost, checks: Sequence[DoctorCheck]) -> SubjectVerdict:
    """The verdict on a host by its state alone: no catalog, no plan, no other host."""
    facts, found = host.facts, [host.problem] if host.problem else []
    if facts and not facts.privileged:
        found = [NOT_ROOT()]
    elif facts:
        expected = host.settings.host.gpus if host.settings else None
        found = list(assess_gpu_health(facts, expected, repairs=False).all)
    return judge_host(host.name, facts, found, checks)


def judge_cluster_state(
    row: ClusterRow, found: Collection[Finding], checks: Sequence[DoctorCheck]
) -> SubjectVerdict:
    """The verdict on a cluster, by the findings of its plan."""
    own = [check for check in checks if check.id.startswith(OF_CLUSTERS)]
    if not row.reached:
        return _unread(row.name, found, "cluster", "The cluster was not read.")
    return SubjectVerdict(row.name, tuple(fold_consequences(_judge(own, {}, found), own)))


def choose_checks(only: Collection[str], skipped: Collection[str]) -> tuple[DoctorCheck, ...]:
    """The checks that count: those of `only`, or all, without those of `skipped`."""
    return tuple(
        check
        for check in load_checks().checks
        if (not only or check.id in only) and check.id not in skipped
    )


def _unread(name: str, findings: Iterable[Finding], kind: str, text: str) -> SubjectVerdict:
    """The verdict on a host or cluster that was not read, whichever checks count."""
    check = next(each for each in load_checks().checks if each.id == kind + ANSWERS)
    why = next((each for each in findings if each.blocks), None)
    why = why or next(iter(findings), None)
    result = CheckOutcome(check.id, check.severity, cause=text, steps=check.steps)
    if why:
        result = replace(result, cause=why.message, remedy=why.remedy, code=why.code)
    return SubjectVerdict(name, (result,))


def _judge(
    checks: Iterable[DoctorCheck], readings: Readings, findings: Collection[Finding]
) -> list[CheckOutcome]:
    known = {code for check in load_checks().checks for code in check.codes}
    return [each for check in checks for each in _results(check, readings, findings, known)]


def _results(
    check: DoctorCheck, readings: Readings, findings: Iterable[Finding], known: Collection[str]
) -> Iterator[CheckOutcome]:
    """The results of one check: a failure for each of its findings, or what it read."""
    reading = readings.get(check.id)
    found = [each for each in findings if _belongs(each, check, known)]
    if found:
        read = reading.read if reading else ""
        yield from (_of_finding(check, each, read) for each in found)
    elif reading is not None:
        yield _of_reading(check, reading)


def _belongs(finding: Finding, check: DoctorCheck, known: Collection[str]) -> bool:
    if check.id.endswith(BLOCKERS):
        return finding.blocks and finding.code not in known
    return finding.code in check.codes


def _of_finding(check: DoctorCheck, finding: Finding, read: str) -> CheckOutcome:
    verdict = Verdict(check.severity)
    if finding.code in load_checks().about_changes:
        verdict = Verdict.INFO
    elif finding.blocks and verdict is not Verdict.UNKNOWN:
        verdict = Verdict.CRITICAL
    return CheckOutcome(
        check.id, verdict, read, finding.message, finding.remedy, finding.code, steps=check.steps
    )


def _of_reading(check: DoctorCheck, reading: Reading) -> CheckOutcome:
    if not reading.fault:
        return CheckOutcome(check.id, Verdict.PASS, reading.read)
    return CheckOutcome(
        check.id,
        reading.verdict or check.severity,
        reading.read,
        reading.fault,
        unit=reading.unit,
        steps=check.steps,
    )


def fold_consequences(
    results: Sequence[CheckOutcome], checks: Sequence[DoctorCheck]
) -> list[CheckOutcome]:
    """The results. A failure follows from the first failed check that its check comes after, also
    through checks that read nothing, but not through one that passes."""
    failed = {each.check for each in results if each.verdict.fails}
    passed = {each.check for each in results} - failed
    roots: dict[str, str] = {}
    for check in checks:  # each comes after those that it names
        broken = failed | (roots.keys() - passed)
        first = next((each for each in check.after if each in broken), "")
        if first:
            roots[check.id] = roots.get(first, first)
    return [
        replace(each, follows=roots.get(each.check, "")) if each.verdict.fails else each
        for each in results
    ]
