"""A click group whose subcommands are imported only when they are used: `--help` stays fast."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from difflib import get_close_matches
from typing import Any

import click

from gpufleet.core.exit_status import ExitStatus
from gpufleet.core.paths import NoHome
from gpufleet.core.stopped import Stopped, Unmatched
from gpufleet.core.streams import prepare_streams
from gpufleet.run.interrupts import ended_by_interrupt


class LazyGroup(click.Group):
    """`lazy`: name of a subcommand -> module:attribute; `entry_points`: group of entry points
    with subcommands of other distributions. Other commands are added as usual."""

    def __init__(
        self, *args: Any, lazy: Mapping[str, str], entry_points: str = "", **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self.lazy = lazy
        self.entry_points = entry_points

    def main(self, *args: Any, **kwargs: Any) -> Any:
        """Fail if standard output is closed: results would go into the next file that is opened."""
        prepare_streams()
        if sys.stdout is None:
            click.echo("Error: standard output is closed. Name a file, or /dev/null.", err=True)
            sys.exit(ExitStatus.USAGE)
        try:
            return super().main(*args, **kwargs)
        finally:
            _end_where_full(sys.exc_info()[1])

    def invoke(self, ctx: click.Context) -> Any:
        """Exit as interrupted after Ctrl+C, for which click exits with 1."""
        try:
            return super().invoke(ctx)
        except NoHome as error:
            raise click.UsageError(str(error)) from error
        except Stopped as stopped:
            for finding in stopped.findings:
                click.echo(finding.paragraph, err=True)
            sys.exit(ExitStatus.NOTHING if isinstance(stopped, Unmatched) else ExitStatus.USAGE)
        except click.Abort as error:
            if not isinstance(error.__context__, KeyboardInterrupt):
                raise
            click.echo("Aborted!", err=True)
        except KeyboardInterrupt:
            click.echo("\nInterrupted.", err=True)  # after ^C
        sys.exit(ExitStatus.INTERRUPTED)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """click's own, which suggests options but no commands."""
        word = args[0]
        try:
            return super().resolve_command(ctx, args)
        except click.NoSuchOption:
            raise
        except click.UsageError as error:
            close = get_close_matches(word, self.list_commands(ctx), n=1)
            if not close:
                raise
            meant = f"{error.message} Did you mean {close[0]!r}?"
            raise click.UsageError(meant, ctx) from error

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted([*super().list_commands(ctx), *self._targets()])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        target = self.lazy.get(cmd_name) or self._targets().get(cmd_name)
        if target is None:
            return super().get_command(ctx, cmd_name)
        module, _, attribute = target.partition(":")
        with ended_by_interrupt():
            command = getattr(importlib.import_module(module), attribute)
        assert isinstance(command, click.Command)
        return command

    def _targets(self) -> dict[str, str]:
        """Subcommands, including those of other distributions; gpufleet's own take precedence."""
        from importlib import metadata  # slow to load

        found = metadata.entry_points(group=self.entry_points) if self.entry_points else ()
        return {point.name: point.value for point in found} | dict(self.lazy)


def _end_where_full(ending: BaseException | None) -> None:
    """End with status 1 or higher if standard output is full, and say why unless its reader has
    ended. `ending`: the exception that ends the command, with its status. If it is an OSError, or
    caused by one, output was lost already; then only a write, not a flush, shows the error."""
    unsaid = isinstance(ending, OSError) or isinstance(getattr(ending, "__cause__", 0), OSError)
    status = getattr(ending, "code", 0)
    try:
        sys.stdout.write("\n" if unsaid else "")
        sys.stdout.flush()
    except OSError as error:
        if not isinstance(error, BrokenPipeError):
            why = error.strerror or str(error)
            click.echo(f"Error: cannot write to standard output: {why}", err=True)
        with suppress(OSError, AttributeError):  # Python writes the rest when it ends
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(max(status, ExitStatus.FAILED) if isinstance(status, int) else ExitStatus.FAILED)
