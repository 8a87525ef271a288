"""The `gpufleet` command. Each subcommand lives in a module of its own, loaded when it is used."""

from __future__ import annotations

import importlib

import click

from gpufleet import __version__

COMMANDS = {
    "catalog": "gpufleet.cli.catalog:catalog",
    "doctor": "gpufleet.cli.doctor:doctor",
    "sandbox": "gpufleet.cli.sandbox:sandbox",
    "verify": "gpufleet.cli.verify:verify",
}


class LazyGroup(click.Group):
    """A group that imports a subcommand only when it is asked for: `--help` stays fast."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[cmd_name].partition(":")
        command = getattr(importlib.import_module(module), attribute)
        assert isinstance(command, click.Command)
        return command


@click.group(cls=LazyGroup)
@click.version_option(__version__)
def main() -> None:
    """GPU nodes and GPU clusters, provisioned, upgraded and verified with pyinfra."""
