"""A pytest plugin that prints the progress of the checks on standard error. pytest prints a letter
per check on standard output."""

from __future__ import annotations

import os
import time
from collections.abc import Generator
from typing import Any

import pytest

from gpufleet.core.live import LiveProgress
from gpufleet.core.names import count_noun


def progress_line(done: int, checks: int, failed: int, seconds: float) -> str:
    """`Checked 34 of 151, 12 s: 2 failed`. Before the first check, hosts are being read."""
    if not done:
        return f"Reading the hosts for {count_noun(checks, 'check')}, {seconds:.0f} s"
    failures = f": {failed} failed" if failed else ""
    return f"Checked {done} of {count_noun(checks, 'check')}, {seconds:.0f} s{failures}"


class CheckProgress:
    """The hooks. They write to a copy of standard error, which pytest redirects during a check."""

    def __init__(self) -> None:
        self._checks = self._done = self._failed = 0
        self._start = time.monotonic()
        self._copy = os.fdopen(os.dup(2), "w", encoding="utf-8", errors="backslashreplace")

    @property
    def line(self) -> str:
        seconds = time.monotonic() - self._start
        return progress_line(self._done, self._checks, self._failed, seconds)

    @pytest.hookimpl(wrapper=True)
    def pytest_report_teststatus(self) -> Generator[None, Any, Any]:
        category, *_ = yield
        return category, "", ""

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> Generator[None, Any, Any]:
        self._checks = len(session.items)
        shown = LiveProgress(lambda width, height: [self.line], lambda: self.line, self._copy)
        if self._checks and not session.config.option.collectonly:
            shown.start()
        try:
            return (yield)
        finally:
            shown.stop()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._failed += report.failed
        self._done += report.when == "teardown"

    def pytest_unconfigure(self) -> None:
        self._copy.close()
