"""`gpufleet verify`: run the shipped checks, and those in checks/, on an inventory's hosts."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager, nullcontext, redirect_stdout
from pathlib import Path

import click
import pytest

from gpufleet.cli.output import limit_option, output_options
from gpufleet.cli.own_catalog import require_own_catalog
from gpufleet.core.exit_status import ExitStatus
from gpufleet.core.live import is_quiet
from gpufleet.core.paths import shipped_path
from gpufleet.core.stopped import Unmatched
from gpufleet.core.visible import printed_value
from gpufleet.node.settings import settings_problems
from gpufleet.verify.findings.hosts import NO_CHECK
from gpufleet.verify.inventory import Target
from gpufleet.verify.progress import CheckProgress

VERIFY_EPILOG = (
    "Exit status: 0 all checks passed or were skipped; 1 a check failed or a host is unreachable; "
    "2 usage error; 4 --limit or -k matches nothing; 130 interrupted."
)
OWN_CHECKS = Path("checks")  # of the working directory
# pytest reads them: options and plugins of another test suite, such as of a CI job
OF_OTHER_TESTS = ("PYTEST_ADDOPTS", "PYTEST_PLUGINS")
# Installed plugins may have options of the same names: pytest-ansible has --inventory and --limit.
# Source: https://github.com/pytest-dev/pytest-testinfra/issues/58 (read 2026-11-29)
NO_PLUGINS = "PYTEST_DISABLE_PLUGIN_AUTOLOAD"
VERIFY_STATUSES = {
    pytest.ExitCode.OK: ExitStatus.CONVERGED,
    pytest.ExitCode.TESTS_FAILED: ExitStatus.FAILED,
    pytest.ExitCode.INTERRUPTED: ExitStatus.INTERRUPTED,
    pytest.ExitCode.INTERNAL_ERROR: ExitStatus.FAILED,
    pytest.ExitCode.USAGE_ERROR: ExitStatus.USAGE,
    pytest.ExitCode.NO_TESTS_COLLECTED: ExitStatus.NOTHING,
}


@contextmanager
def _alone() -> Iterator[None]:
    """Keep options and plugins of other tests away from the checks."""
    names = (*OF_OTHER_TESTS, NO_PLUGINS)
    before = {name: os.environ.pop(name) for name in names if name in os.environ}
    os.environ[NO_PLUGINS] = "1"
    try:
        yield
    finally:
        del os.environ[NO_PLUGINS]
        os.environ.update(before)


class Refusal:
    """A pytest plugin that records why the checks refused to run."""

    def __init__(self) -> None:
        self.cause: BaseException | None = None

    @pytest.hookimpl(wrapper=True)
    def pytest_cmdline_main(self) -> Generator[None, object, object]:
        try:
            return (yield)
        except pytest.UsageError as error:
            self.cause = error.__cause__
            raise

    def status(self, code: int) -> ExitStatus:
        """gpufleet's exit status for pytest's `code`."""
        if isinstance(self.cause, Unmatched):
            return ExitStatus.NOTHING
        return VERIFY_STATUSES.get(pytest.ExitCode(code), ExitStatus.FAILED)


class Settings:
    """A pytest plugin that reads the settings of hosts and clusters as the deploys do."""

    @pytest.hookimpl
    def pytest_gpufleet_problems(self, target: Target) -> tuple[str, ...]:
        try:
            problems = settings_problems(target.groups, target.data)
        except Exception as error:  # noqa: BLE001 the boundary: checks of other hosts go on
            why = printed_value(error, str)
            return (f"they cannot be read ({type(error).__name__}: {why})",)
        return tuple(
            f"{found.code} {found.message.rstrip('.')} ({found.remedy})" for found in problems
        )


def pytest_arguments(
    inventory: str,
    limit: tuple[str, ...],
    junit: str | None,
    json_report: str | None,
    expression: str | None,
) -> list[str]:
    """The command line for pytest: short output, and no file but the reports is written.

    A pytest.ini of the working directory, or the conftest.py of a checkout's other tests, is
    excluded.
    """
    folder = shipped_path("checks")
    own = [str(OWN_CHECKS)] if OWN_CHECKS.is_dir() else []
    arguments = [str(folder), *own, "-p", "gpufleet.verify.plugin", "--inventory", inventory]
    arguments += ["-q", "--no-header", "-rN", "--tb=short", "-p", "no:cacheprovider"]
    arguments += ["-c", os.devnull, "--import-mode=importlib"]  # files of both may share a name
    arguments += ["-o", "console_output_style=classic"]  # no percentage: CheckProgress has it
    arguments += ["--continue-on-collection-errors"]  # in a file of the user's
    arguments += [f"--rootdir={folder.parent.parent}", f"--confcutdir={folder}"]
    for word in limit:
        arguments += ["--limit", word]
    for option, given in (("--junitxml", junit), ("--json", json_report), ("-k", expression)):
        arguments += [option, given] if given else []
    return arguments


@click.command(epilog=VERIFY_EPILOG)
@click.argument("inventory", type=click.Path())
@limit_option
@click.option("--junit", metavar="FILE", help="Write the results as JUnit XML.")
@click.option("--json", "json_report", metavar="FILE", help="Write the results as JSON.")
@click.option("-k", "expression", metavar="EXPR", help="Run only matching checks, as in pytest.")
@output_options
def verify(
    inventory: str,
    limit: tuple[str, ...],
    junit: str | None,
    json_report: str | None,
    expression: str | None,
) -> None:
    """Check what was installed on hosts and clusters.

    Also runs your own checks: the files test_*.py in the folder checks/ of the working directory.

    Runs short-lived test pods and containers and removes them; changes nothing else.
    """
    require_own_catalog()
    refusal = Refusal()
    arguments = pytest_arguments(inventory, limit, junit, json_report, expression)
    held = io.StringIO()
    with _alone(), redirect_stdout(held) if is_quiet() else nullcontext():
        code = pytest.main(arguments, plugins=[refusal, Settings(), CheckProgress()])
    if code != pytest.ExitCode.OK:
        click.echo(held.getvalue(), nl=False)
    if code == pytest.ExitCode.NO_TESTS_COLLECTED and expression:
        click.echo(NO_CHECK(expression=expression).paragraph, err=True)
    sys.exit(refusal.status(code))
