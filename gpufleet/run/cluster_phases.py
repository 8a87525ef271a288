"""Runs the phases of a command as processes; their results are one JSON and one JUnit file."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from xml.etree import ElementTree

from gpufleet import __version__
from gpufleet.core.exit_status import ExitStatus
from gpufleet.core.process import Process, run_in_front
from gpufleet.core.visible import one_line
from gpufleet.run.report import BAD_STATUSES, host_problems
from gpufleet.run.report_file import hosts_of_report, print_error, report_of_process, write_file

SCHEMA = 1
SUITE = "gpufleet.cluster"


@dataclass(frozen=True, slots=True)
class ClusterPhase:
    """One process. `checks`: it is `gpufleet verify`, which takes its reports as options.
    `again`: it runs a second time if nodes get labels only now."""

    name: str
    words: Sequence[str]
    checks: bool = False
    again: bool = False


@dataclass(frozen=True, slots=True)
class Done:
    """The result of a phase. `status` is None if the phase was not reached."""

    name: str
    status: int | None
    seconds: float
    report: dict[str, Any] | None

    def as_dict(self) -> dict[str, Any]:
        result = "not reached" if self.status is None else "failed" if self.status else "passed"
        return {
            "name": self.name,
            "result": result,
            "status": self.status,
            "seconds": round(self.seconds, 1),
            "report": self.report,
        }


def run_phases(phases: Sequence[ClusterPhase], file: Path | None, xml: Path | None) -> int:
    """Run the phases until one fails; returns its exit status, or else 0. The reports, JSON in
    `file` and JUnit in `xml`, include phases that were not reached."""
    done: list[Done] = []
    status = 0
    with TemporaryDirectory(prefix="gpufleet-cluster-", ignore_cleanup_errors=True) as folder:
        results = Path(folder, "checks.xml")
        for phase in phases:
            if status:
                done.append(Done(phase.name, None, 0.0, None))
                continue
            print_error(f"== {phase.name}")
            done.append(_run(phase, Path(folder), results))
            if phase.again and not done[-1].status and _awaits_labels(done[-1]):
                print_error(f"== {phase.name}, again: NFD labels the nodes now")
                done.append(_run(phase, Path(folder), results))
            status = done[-1].status or 0
            if status:
                rest = "; nothing after it was started" if phase is not phases[-1] else ""
                print_error(f"{phase.name}: failed{rest}")
        suite = phases_junit(done, results)
    report = {
        "schema": SCHEMA,
        "gpufleet": __version__,
        "phases": [each.as_dict() for each in done],
    }
    written = [
        not file or write_file(file, lambda: json.dumps(report, indent=2) + "\n"),
        not xml or write_file(xml, lambda: suite),
    ]
    known = {int(each) for each in ExitStatus}
    if status not in known or (not status and not all(written)):
        return int(ExitStatus.FAILED)
    return status


def nodes_of(dry: Sequence[str], hosts: Sequence[str]) -> dict[str, frozenset[str]]:
    """The hosts that a dry run of the removal would reset or could not read -> the certificate
    authorities of their cluster."""
    with report_of_process() as (report, environment):
        Process(dry, environment=environment, prompts=True).wait()
        found = hosts_of_report(report) or {}
    plans = {
        name: found.get(name, {}).get("plan", {})
        for name in hosts
        if name not in found
        or found[name]["status"] in BAD_STATUSES
        or found[name]["plan"].get("kubernetes")
    }
    return {name: frozenset(plan.get("authorities", ())) for name, plan in plans.items()}


def phases_junit(done: Sequence[Done], checks: Path) -> str:
    """A test case for each phase, followed by the test cases of the checks."""
    root = ElementTree.Element("testsuites")
    failed = [each for each in done if each.status]
    counts = {"tests": len(done), "failures": len(failed), "errors": 0}
    counts["skipped"] = len([each for each in done if each.status is None])
    head = {"name": SUITE, "time": f"{sum(each.seconds for each in done):.1f}"}
    suite = ElementTree.SubElement(root, "testsuite", head)
    suite.attrib.update({name: str(number) for name, number in counts.items()})
    for each in done:
        words = {"classname": SUITE, "name": each.name, "time": f"{each.seconds:.1f}"}
        case = ElementTree.SubElement(suite, "testcase", words)
        if each.status is None:
            ElementTree.SubElement(case, "skipped", message="not reached")
        elif each.status:
            failure = ElementTree.SubElement(case, "failure", message=f"exit status {each.status}")
            hosts = ((each.report or {}).get("hosts") or {}).items()
            failure.text = "\n".join(
                f"{one_line(name)}: {line}" for name, host in hosts for line in host_problems(host)
            )
    if checks.is_file():
        with suppress(ElementTree.ParseError):  # the checks ended before they wrote it
            root.extend(ElementTree.parse(checks).getroot().iter("testsuite"))
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _awaits_labels(done: Done) -> bool:
    """True if a phase installed NFD for a cluster without labelled nodes (GF873)."""
    hosts = ((done.report or {}).get("hosts") or {}).values()
    return any(
        "node-feature-discovery" in (host.get("releases") or {})
        and any(found["code"] == "GF873" for found in host.get("findings") or ())
        for host in hosts
    )


def _run(phase: ClusterPhase, folder: Path, results: Path) -> Done:
    report = folder / f"{len(list(folder.iterdir()))}.json"
    words, environment = list(phase.words), dict(os.environ)
    if phase.checks:
        words += ["--json", str(report), "--junit", str(results)]
    else:
        environment |= {"GPUFLEET_REPORT": str(report), "GPUFLEET_JUNIT": ""}
    began = time.monotonic()
    status = run_in_front(words, environment)
    seconds = time.monotonic() - began
    found = json.loads(report.read_text("utf-8")) if report.is_file() else None
    return Done(phase.name, status, seconds, found)
