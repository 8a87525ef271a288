"""Runs previews, and reads each host's plan from their reports."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from gpufleet.core.exit_status import ExitStatus
from gpufleet.core.process import run_in_front

Hosts = Mapping[str, Mapping[str, Any]]  # by name, as in the report of a preview


def run_preview(
    command: Sequence[str], *, own_report: bool = False, output: IO[str] | None = None
) -> tuple[int, Hosts | None]:
    """Show a preview with a pyinfra command. Returns its exit status, and the hosts and clusters of
    its report, or None without a report.

    `own_report`: reports that the environment names belong to the run that follows. `output`: takes
    what the preview prints.
    """
    with tempfile.TemporaryDirectory(prefix="gpufleet-") as folder:
        asked = "" if own_report else os.environ.get("GPUFLEET_REPORT", "")
        report = Path(asked or Path(folder, "report.json"))
        environment = {**os.environ, "GPUFLEET_REPORT": str(report)}
        environment |= {"GPUFLEET_JUNIT": ""} if own_report else {}
        status = run_in_front(command, environment, output)
        try:
            hosts: Hosts = json.loads(report.read_text("utf-8"))["hosts"]
        except (OSError, ValueError, LookupError):
            return status, None
        return status, hosts


def preview_before_run(command: Sequence[str], output: IO[str] | None = None) -> Hosts | None:
    """Show a preview and return its hosts; end the process if it has no plan. The run that follows
    reads the hosts again."""
    status, hosts = run_preview(command, own_report=True, output=output)
    if status not in (ExitStatus.CONVERGED, ExitStatus.FAILED):  # failed: some host is blocked
        sys.exit(status)
    return hosts


def planned_hosts(hosts: Hosts | None) -> int | None:
    """The number of hosts and clusters that would change, or None if it is unknown."""
    return None if hosts is None else sum(bool(host["plan"]["steps"]) for host in hosts.values())
