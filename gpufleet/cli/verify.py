"""`gpufleet verify`: run the checks of tests/post_deploy on the hosts of an inventory."""

from __future__ import annotations

import sys
from collections.abc import Generator
from pathlib import Path

import click
import pytest

import gpufleet
from gpufleet.core.exit_status import ExitStatus
from gpufleet.verify.findings.hosts import CHECKS_MISSING, LIMIT, NO_CHECK
from gpufleet.verify.inventory import VerifyError

EPILOG = (
    "Exit status: 0 all checks passed or were skipped; 1 a check failed or a host is unreachable; "
    "2 usage error; 4 --limit or -k matches nothing; 130 interrupted."
)
STATUSES = {
    pytest.ExitCode.OK: ExitStatus.CONVERGED,
    pytest.ExitCode.TESTS_FAILED: ExitStatus.FAILED,
    pytest.ExitCode.INTERRUPTED: ExitStatus.INTERRUPTED,
    pytest.ExitCode.INTERNAL_ERROR: ExitStatus.FAILED,
    pytest.ExitCode.USAGE_ERROR: ExitStatus.USAGE,
    pytest.ExitCode.NO_TESTS_COLLECTED: ExitStatus.NOTHING,
}


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
        cause = self.cause
        if isinstance(cause, VerifyError) and cause.finding.code == LIMIT.code:
            return ExitStatus.NOTHING
        return STATUSES.get(pytest.ExitCode(code), ExitStatus.FAILED)


def checks_folder(package: Path) -> Path:
    """tests/post_deploy of the source tree that `package` lies in. Raises VerifyError (GF700)."""
    folder = package.parent / "tests" / "post_deploy"
    if not (folder / "conftest.py").is_file():
        raise VerifyError(CHECKS_MISSING(path=folder))
    return folder


def pytest_arguments(
    folder: Path,
    inventory: str,
    limit: tuple[str, ...] = (),
    junit: str | None = None,
    json_report: str | None = None,
    expression: str | None = None,
) -> list[str]:
    """The command line for pytest: short output, nothing written into the source tree.

    The conftest.py of the other tests requires packages that a user may not have: it is excluded.
    """
    arguments = [str(folder), "--inventory", inventory, "-q", "--no-header", "-rN"]
    arguments += ["--tb=short", "-p", "no:cacheprovider"]
    arguments += [f"--rootdir={folder.parent.parent}", f"--confcutdir={folder}"]
    for word in limit:
        arguments += ["--limit", word]
    if junit:
        arguments += ["--junitxml", junit]
    if json_report:
        arguments += ["--json", json_report]
    if expression:
        arguments += ["-k", expression]
    return arguments


@click.command(epilog=EPILOG)
@click.argument("inventory")
@click.option(
    "--limit",
    multiple=True,
    metavar="HOST|GROUP",
    help="Check only this host or group; repeatable.",
)
@click.option("--junit", metavar="FILE", help="Write the results as JUnit XML.")
@click.option("--json", "json_report", metavar="FILE", help="Write the results as JSON.")
@click.option("-k", "expression", metavar="EXPR", help="Run only matching checks, as in pytest.")
def verify(
    inventory: str,
    limit: tuple[str, ...],
    junit: str | None,
    json_report: str | None,
    expression: str | None,
) -> None:
    """Check what was installed on the hosts and clusters of INVENTORY.

    Runs short-lived test pods and containers and removes them; changes nothing else.
    """
    try:
        folder = checks_folder(Path(gpufleet.__file__).parent)
    except VerifyError as error:
        click.echo(str(error), err=True)
        sys.exit(ExitStatus.USAGE)
    refusal = Refusal()
    arguments = pytest_arguments(folder, inventory, limit, junit, json_report, expression)
    code = pytest.main(arguments, plugins=[refusal])
    if code == pytest.ExitCode.NO_TESTS_COLLECTED and expression:
        click.echo(str(VerifyError(NO_CHECK(expression=expression))), err=True)
    sys.exit(refusal.status(code))
