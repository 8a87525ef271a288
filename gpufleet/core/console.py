"""Where results are printed: standard output, as wide as the terminal or COLUMNS says."""

from __future__ import annotations

import os
import sys

from rich.console import Console

WIDTH = 140  # columns where there is no terminal, and COLUMNS is not set


def result_console() -> Console:
    """A console for results; it prints control characters on a terminal alone."""
    known = sys.stdout.isatty() or os.environ.get("COLUMNS", "").isdigit()
    return Console(width=None if known else WIDTH, highlight=False)
