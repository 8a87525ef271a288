"""Runs one part of the hosts in a `gpufleet` process, and reads its report."""

from __future__ import annotations

import json
import os
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gpufleet import __version__
from gpufleet.core.findings import Finding
from gpufleet.core.inventory import exact_limit
from gpufleet.core.process import Process
from gpufleet.core.python import python_code
from gpufleet.core.visible import one_line
from gpufleet.run import findings
from gpufleet.run.report import HostReport

GPUFLEET = "from gpufleet.cli import main; main(prog_name='gpufleet')"
MAX_TAIL_CHARS = 65_536  # of a part's output
MAX_REASON_CHARS = 300


@dataclass(frozen=True, slots=True)
class HostPart:
    """The hosts of one process. `words`: a command of gpufleet without its hosts and report."""

    hosts: tuple[str, ...]
    words: tuple[str, ...] = field(repr=False)  # may hold secrets
    folder: str
    version: str = __version__


@dataclass(frozen=True, slots=True)
class ProcessOutcome:
    """The result of a process. `report`: JSON, or "" if the process wrote no report."""

    status: int | None
    report: str
    output: str


def run_part(part: HostPart) -> ProcessOutcome:
    """Run gpufleet on a part, on this machine or on a worker of Dask."""
    if part.version != __version__:
        why = f"it has gpufleet {__version__}, this run is of {part.version}"
        return ProcessOutcome(None, "", why)
    with tempfile.TemporaryDirectory(prefix="gpufleet-") as folder:
        report = Path(folder, "report.json")
        limits = (word for name in part.hosts for word in ("--limit", exact_limit(name)))
        hidden = ("GPUFLEET_REPORT", "GPUFLEET_JUNIT")  # the reports of the whole run
        environment = {name: value for name, value in os.environ.items() if name not in hidden}
        words = [part.words[0], *limits, "--json", str(report), *part.words[1:]]
        command = [*python_code(GPUFLEET), *words]
        try:
            run = Process(command, merged=True, environment=environment, folder=Path(part.folder))
            result = run.wait()
        except OSError as error:
            return ProcessOutcome(None, "", f"{error.filename}: {error.strerror}")
        text = report.read_text("utf-8", "replace") if report.is_file() else ""
        return ProcessOutcome(result.code, text, result.stdout[-MAX_TAIL_CHARS:])


def part_hosts(part: HostPart, outcome: ProcessOutcome) -> tuple[list[HostReport], bool]:
    """The hosts of a part from its report, or not reached with the reason; and True if the
    operations of all hosts were run."""
    said = outcome.output.rstrip().rpartition("\n")[2].strip()[:MAX_REASON_CHARS]

    def lost(name: str, why: str) -> HostReport:
        output = one_line(said).rstrip(".") or "nothing"
        return not_reached(name, findings.WORKER_LOST(host=name, why=why, output=output))

    try:
        report: dict[str, Any] = json.loads(outcome.report)
        found = {name: HostReport.from_dict(name, data) for name, data in report["hosts"].items()}
        # a different status: an exception in a user's deploy, which the report does not mention
        valid = report["exit_status"] == outcome.status
    except (ValueError, LookupError, TypeError, AttributeError):
        valid = False
    if not valid:
        why = f"it ended with status {outcome.status}"
        return [lost(name, why) for name in part.hosts], False
    missing = "its report does not have this host"
    return [found.get(name) or lost(name, missing) for name in part.hosts], report["completed"]


def not_reached(name: str, finding: Finding) -> HostReport:
    return HostReport(name, status="not reached", failed=True, findings=[finding])
