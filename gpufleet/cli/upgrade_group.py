"""How `gpufleet upgrade` reads its words: commands, inventories, and options of pyinfra."""

from __future__ import annotations

from difflib import get_close_matches
from pathlib import Path

import click

from gpufleet.cli.upgrade_options import REFUSED

NEAR = 0.75


class UpgradeGroup(click.Group):
    """`upgrade INVENTORY` is `upgrade start INVENTORY`: its help shows the options of both."""

    default = "start"

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        self.commands[self.default].format_options(ctx, formatter)
        self.format_commands(ctx, formatter)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        self.commands[self.default].format_epilog(ctx, formatter)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and args[0] not in (*self.commands, "--help"):
            self._check(args[0])
            args = [self.default, *args]
        return super().parse_args(ctx, args)

    def _check(self, word: str) -> None:
        """Raises click.UsageError for a misspelt command."""
        close = get_close_matches(word, self.commands, n=1, cutoff=NEAR)
        if close and not Path(word).exists():
            raise click.UsageError(f"No such command {word!r}. Did you mean {close[0]!r}?")


class StartCommand(click.Command):
    """An option of pyinfra before `--` gets the answer that it gets behind it."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            if error.option_name in REFUSED:
                raise click.UsageError(REFUSED[error.option_name], ctx) from error
            raise
