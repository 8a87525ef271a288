"""A preview whose report says what it would change."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from gpufleet.core.process import run_in_front


def run_preview(command: Sequence[str], *, own_report: bool = False) -> tuple[int, int | None]:
    """Show what a run would do, by a command of pyinfra's: its exit status, and how many hosts and
    clusters the run would change; None without a report.

    `own_report`: the reports that the environment asks for are those of the run that follows.
    """
    with tempfile.TemporaryDirectory(prefix="gpufleet-") as folder:
        asked = "" if own_report else os.environ.get("GPUFLEET_REPORT", "")
        report = Path(asked or Path(folder, "report.json"))
        environment = {**os.environ, "GPUFLEET_REPORT": str(report)}
        environment |= {"GPUFLEET_JUNIT": ""} if own_report else {}
        status = run_in_front(command, environment)
        return status, _planned(report)


def _planned(report: Path) -> int | None:
    try:
        hosts = json.loads(report.read_text("utf-8"))["hosts"].values()
        return sum(bool(host["plan"]["steps"]) for host in hosts)
    except (OSError, ValueError, LookupError):
        return None
