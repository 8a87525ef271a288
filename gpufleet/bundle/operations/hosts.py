"""Runs the deploy that collects the packages of a bundle."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from gpufleet.bundle.operations.store import FOLDER_VARIABLE
from gpufleet.core.exit_status import ExitStatus
from gpufleet.core.findings import Finding
from gpufleet.core.names import group_by_thing
from gpufleet.core.process import run_in_front
from gpufleet.run.report import BAD_STATUSES, HostReport

Stops = dict[Finding, tuple[str, ...]]  # why hosts and clusters were stopped, with their names


def collect_packages(command: Sequence[str], folder: Path) -> tuple[int, Stops]:
    """Collect the packages of hosts in the folder, with pyinfra's command for the deploy `bundle`.
    Returns an exit status, and why hosts were stopped."""
    with (
        tempfile.TemporaryDirectory(prefix="gpufleet-") as work,
        tempfile.TemporaryFile("w+") as table,
    ):
        report = Path(work, "report.json")
        own = {"GPUFLEET_REPORT": str(report), "GPUFLEET_JUNIT": ""}
        own |= {FOLDER_VARIABLE: str(folder.absolute())}
        # the table is one of a plan, which says nothing about a bundle
        status = run_in_front(command, {**os.environ, **own}, table)
        stopped = _stopped(report)
    found = group_by_thing((part.name, each) for part in stopped for each in part.findings)
    return status or (ExitStatus.FAILED if stopped else ExitStatus.CONVERGED), found


def _stopped(report: Path) -> list[HostReport]:
    """The hosts that failed or were not reached; none without a report."""
    try:
        hosts = json.loads(report.read_text("utf-8"))["hosts"]
    except (OSError, ValueError, LookupError):
        return []
    parts = [HostReport.from_dict(name, data) for name, data in hosts.items()]
    return [part for part in parts if part.status in BAD_STATUSES]
