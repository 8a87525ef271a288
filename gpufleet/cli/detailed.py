"""Exit statuses like those of `terraform plan -detailed-exitcode`, for commands that offer them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

from gpufleet.core.exit_status import ExitStatus
from gpufleet.core.stopped import Stopped, Unmatched

OPTION_BY_PARAMETER = {"drift": "--drift", "detailed": "--detailed-exitcode"}  # parameter -> option


class UsageFailed(click.UsageError):
    """Wrong usage of a command in which status 2 has another meaning."""

    exit_code = int(ExitStatus.FAILED)


class DetailedCommand(click.Command):
    """A command that, with one of OPTIONS, ends with 1 for wrong usage: 2 has another meaning."""

    always = False  # True if 2 has another meaning without an option, too

    def make_context(
        self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any
    ) -> click.Context:
        with _usage_failed(
            wanted=self.always or any(option in args for option in OPTION_BY_PARAMETER.values())
        ):
            return super().make_context(info_name, args, parent, **extra)

    def invoke(self, context: click.Context) -> Any:
        with _usage_failed(wanted=self.always or any(map(context.params.get, OPTION_BY_PARAMETER))):
            return super().invoke(context)


class CheckCommand(DetailedCommand):
    """A command that always ends with 1 for wrong usage."""

    always = True


@contextmanager
def _usage_failed(*, wanted: bool) -> Iterator[None]:
    try:
        yield
    except click.UsageError as error:
        if wanted:
            raise UsageFailed(error.format_message(), error.ctx) from error
        raise
    except Stopped as stopped:
        if wanted and not isinstance(stopped, Unmatched):
            click.echo("\n".join(each.paragraph for each in stopped.findings), err=True)
            sys.exit(ExitStatus.FAILED)
        raise
    except SystemExit as ended:
        if wanted and ended.code == ExitStatus.USAGE:
            sys.exit(ExitStatus.FAILED)
        raise


def end_detailed(status: int, changes: int | None) -> None:
    """End the command: with 2 if hosts or clusters changed, or would by the plan, with 1 if their
    number is unknown. Without changes, or with a blocker, the status stays."""
    if status == ExitStatus.CONVERGED and changes != 0:
        status = ExitStatus.FAILED if changes is None else ExitStatus.DRIFT
        click.get_current_context().exit(status)
    sys.exit(status)
