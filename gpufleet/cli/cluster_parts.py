"""Reads the plan of clusters, for a command that shows clusters together with hosts."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from gpufleet.cli.deploy import deploy_file, pyinfra_arguments
from gpufleet.cli.output import print_note
from gpufleet.core.exit_status import ExitStatus
from gpufleet.core.live import is_quiet
from gpufleet.core.names import count_noun
from gpufleet.core.process import Process
from gpufleet.core.python import python_module


def read_clusters(inventory: str, names: Sequence[str]) -> Mapping[str, Mapping[str, Any]]:
    """The clusters of a plan's report, by name: run/report.schema.json. {} without a report."""
    if not names:
        return {}
    if not is_quiet():
        print_note(f"Reading {count_noun(len(names), 'cluster')}")
    words = pyinfra_arguments(inventory, [deploy_file("preflight")], names, (), yes=True)
    with tempfile.TemporaryDirectory(prefix="gpufleet-") as folder:
        report = Path(folder, "report.json")
        environment = {**os.environ, "GPUFLEET_REPORT": str(report), "GPUFLEET_JUNIT": ""}
        run = Process([*python_module("pyinfra"), *words], environment=environment)
        try:
            run.wait()
        except KeyboardInterrupt:
            run.end()
            click.echo("Interrupted.", err=True)
            sys.exit(ExitStatus.INTERRUPTED)
        try:
            found: Mapping[str, Mapping[str, Any]] = json.loads(report.read_text("utf-8"))["hosts"]
        except (OSError, ValueError, LookupError):
            return {}
    return found
