"""The results of a run as JUnit XML: a test case for each host and cluster."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from gpufleet.core.visible import one_line
from gpufleet.run.report import BAD_STATUSES, HostReport, RunFacts


def report_junit(hosts: Sequence[HostReport], run: RunFacts) -> str:
    """A suite for the deploys of the run. A host that failed or was not reached is a failure."""
    name = "gpufleet." + ("+".join(Path(each).stem for each in run.deploys) or "run")
    seconds = (run.finished - run.started).total_seconds()
    failed = [host for host in hosts if host.status in BAD_STATUSES]
    suite = ElementTree.Element("testsuite", {"name": name, "time": f"{seconds:.1f}"})
    counts = {"tests": len(hosts), "failures": len(failed), "errors": 0, "skipped": 0}
    suite.attrib.update({key: str(count) for key, count in counts.items()})
    for host in hosts:
        words = {"classname": name, "name": one_line(host.name), "time": f"{host.seconds:.1f}"}
        case = ElementTree.SubElement(suite, "testcase", words)
        if host.status in BAD_STATUSES:
            failure = ElementTree.SubElement(case, "failure", message=host.status)
            failure.text = "\n".join(host_problems(host.as_dict()))
    root = ElementTree.Element("testsuites")
    root.append(suite)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def host_problems(host: Mapping[str, Any]) -> Iterator[str]:
    """Blockers and errors of a host in a report, one line each, without control characters."""
    yield from _lines(
        f"{each['code']} {each['message']}"
        for each in host.get("findings", ())
        if each.get("severity") == "blocker"
    )
    yield from _lines(host.get("errors", ()))


def _lines(texts: Iterable[str]) -> Iterator[str]:
    return (one_line(line) for text in texts for line in str(text).splitlines())
