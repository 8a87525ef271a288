"""A pytest plugin that writes a run's results to the terminal, as JSON and as JUnit XML.

A check's texts may repeat output of a host or data of the inventory: secrets and control characters
are removed from all of them.
"""

from __future__ import annotations

import json
import tempfile
import warnings
from collections.abc import Generator, Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from _pytest.junitxml import xml_key  # holds the only object with the path of the file

from gpufleet import __version__
from gpufleet.core.console import result_console
from gpufleet.core.secrets import hide_secrets
from gpufleet.core.stopped import Stopped
from gpufleet.core.visible import each_line
from gpufleet.run.report_file import JUNIT, REPORT_FILE, prepare_file, write_file
from gpufleet.verify.checks import NO_HOST, CheckFailed, check_name, host_of
from gpufleet.verify.inventory import Target
from gpufleet.verify.report import CheckResult, Outcome, Report

SCHEMA = 1  # version of the JSON; increased when a field is removed or changes its meaning
TIME = "%Y-%m-%dT%H:%M:%SZ"


def prepare_files(config: pytest.Config) -> None:
    """Verify before any check that the result files can be written.

    Raises UsageError.
    """
    try:
        if config.option.json_report:
            prepare_file(config.option.json_report, "--json", REPORT_FILE)
        if config.option.xmlpath:
            prepare_file(config.option.xmlpath, "--junit", JUNIT)
    except Stopped as stopped:
        raise pytest.UsageError(str(stopped)) from stopped


class Reporting:
    """The hooks for the hosts and clusters of one run. They collect results in the process that
    prints the summary, which receives all of them."""

    def __init__(self, targets: list[Target]) -> None:
        self._report = Report({target.name: {} for target in targets})
        self._started = datetime.now(timezone.utc)

    def _shown(self, text: str) -> str:
        return each_line(hide_secrets(text))

    def _clean(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        """Remove secrets and control characters from every text of a report."""
        if isinstance(report.longrepr, tuple):
            path, line, reason = report.longrepr
            report.longrepr = (path, line, self._shown(reason))
        elif report.longrepr is not None:
            report.longrepr = self._shown(report.longreprtext)
        report.sections = [(name, self._shown(text)) for name, text in report.sections]
        if isinstance(report, pytest.TestReport) and hasattr(report, "wasxfail"):
            report.wasxfail = self._shown(report.wasxfail)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Store host, check and code as properties, which reach JUnit and xdist's controller."""
        report = yield
        host = host_of(item)
        if host is not None:
            report.user_properties += [("host", host), ("check", check_name(item))]
        error = call.excinfo.value if call.excinfo else None
        if isinstance(error, CheckFailed):
            code = ("code", error.finding.code)
            report.user_properties.append(code)
            item.user_properties.append(code)  # JUnit reads them from the teardown's report
            report.longrepr = str(error)  # no traceback: the text is complete
        elif isinstance(error, AssertionError | pytest.fail.Exception):
            report.user_properties.append(("outcome", "failed"))  # of a user's own check
        self._clean(report)
        return report

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_make_collect_report(
        self,
    ) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
        report = yield
        self._clean(report)
        return report

    @pytest.hookimpl(tryfirst=True)
    def pytest_warning_recorded(self, warning_message: warnings.WarningMessage) -> None:
        warning_message.message = self._shown(str(warning_message.message))

    def pytest_sessionstart(self, session: pytest.Session) -> None:
        self._junit = session.config.stash.get(xml_key, None)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        properties = {name: str(value) for name, value in report.user_properties}
        if self._junit and report.when == "setup" and "check" in properties:
            self._junit.node_reporter(report).add_attribute("classname", properties["host"])
        if "check" in properties and (report.when == "call" or not report.passed):
            result = _result(report, properties)
            self._report.add(properties["host"], properties["check"], result)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Count a user's file that cannot be loaded as one check in error."""
        if report.failed:
            name = Path(report.nodeid.partition("::")[0]).stem.removeprefix("test_")
            self._report.add(NO_HOST, name, CheckResult("error", None, report.longreprtext))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if any(self._report.hosts.values()):
            terminalreporter.write_line("")
            terminalreporter.write_line(self._report.table(result_console().width))

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> Generator[None, None, None]:
        """Write the files. pytest first writes its own into a private folder, because it would
        follow a link and leave the file readable by everyone."""
        log = session.config.stash.get(xml_key, None)
        wanted = log.logfile if log else ""
        with tempfile.TemporaryDirectory(prefix="gfv-") as folder:
            if log:
                log.suite_name = "gpufleet verify"
                log.logfile = str(Path(folder, "junit.xml"))
            yield
            if log:
                _write(session, wanted, Path(log.logfile).read_text("utf-8"))
                log.logfile = wanted  # as the summary names it
        path = getattr(session.config.option, "json_report", None)
        if path and not hasattr(session.config, "workerinput"):
            _write(session, path, json.dumps(self._as_dict(session), indent=2) + "\n")

    def _as_dict(self, session: pytest.Session) -> dict[str, Any]:
        """The JSON of a run."""
        return {
            "schema": SCHEMA,
            "gpufleet": __version__,
            "inventory": session.config.option.inventory,
            "started": self._started.strftime(TIME),
            "finished": datetime.now(timezone.utc).strftime(TIME),
            **self._report.as_dict(),
        }


def _write(session: pytest.Session, path: str, text: str) -> None:
    if not write_file(Path(path).absolute(), lambda: text):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def _result(report: pytest.TestReport, properties: Mapping[str, str]) -> CheckResult:
    code = properties.get("code")
    if report.skipped:
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longreprtext
        return CheckResult("skipped", None, reason.removeprefix("Skipped: "), report.duration)
    if report.failed:
        outcome: Outcome = "failed" if code or "outcome" in properties else "error"
        return CheckResult(outcome, code, report.longreprtext, report.duration)
    return CheckResult("passed", seconds=report.duration)
