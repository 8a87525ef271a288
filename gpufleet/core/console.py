"""Prints results on standard output, as wide as the terminal or as COLUMNS says."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from gpufleet.core.findings import Finding, Severity
from gpufleet.core.names import name_hosts
from gpufleet.core.visible import each_line

STYLES = {Severity.BLOCKER: "bold red", Severity.WARNING: "yellow", Severity.INFO: "cyan"}
CONSOLE_WIDTH = 140  # columns without a terminal and without COLUMNS


class Results(Console):
    """A rich console that raises on a broken pipe. rich's own console would end the process."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))


def result_console() -> Console:
    """A console for results. It prints control characters only on a terminal."""
    known = sys.stdout.isatty() or os.environ.get("COLUMNS", "").isdigit()
    return Results(width=None if known else CONSOLE_WIDTH, highlight=False)


def print_finding(
    console: Console, finding: Finding, hosts: Sequence[str] = (), *, remedy: bool = True
) -> None:
    """Print a finding and its hosts, if any: code, message, remedy. No text is read as markup.
    `remedy`: False before another finding with the same one."""
    word = (f"{finding.code} {finding.severity.value}", STYLES[finding.severity])
    place = f" {name_hosts(hosts)}:" if hosts else ""
    console.print(Text.assemble(word, f"{place} {each_line(finding.message)}"), highlight=False)
    if remedy:
        console.print(Text(f"  {each_line(finding.remedy)}", "dim"), highlight=False)
