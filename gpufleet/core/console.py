"""How results are printed: on standard output, as wide as the terminal or COLUMNS says."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from gpufleet.core.findings import Finding, Severity
from gpufleet.core.names import few
from gpufleet.core.visible import each_line

STYLES = {Severity.BLOCKER: "bold red", Severity.WARNING: "yellow", Severity.INFO: "cyan"}
WIDTH = 140  # columns where there is no terminal, and COLUMNS is not set


class Results(Console):
    """rich's console, which would end the process where nobody reads a pipe: here that is an error
    as any other."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))


def result_console() -> Console:
    """A console for results; it prints control characters on a terminal alone."""
    known = sys.stdout.isatty() or os.environ.get("COLUMNS", "").isdigit()
    return Results(width=None if known else WIDTH, highlight=False)


def print_finding(console: Console, finding: Finding, hosts: Sequence[str] = ()) -> None:
    """Print a finding, with its hosts if any: code, what and why, what to do. Nothing of it is
    markup."""
    word = (f"{finding.code} {finding.severity.value}", STYLES[finding.severity])
    place = f" {few(hosts)}:" if hosts else ""
    console.print(Text.assemble(word, f"{place} {each_line(finding.message)}"), highlight=False)
    console.print(Text(f"  {each_line(finding.remedy)}", "dim"), highlight=False)
