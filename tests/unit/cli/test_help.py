"""Help: complete sentences at 80 columns, and the options of a group's default command."""

from __future__ import annotations

from collections.abc import Iterator

import click
import pytest
from click.testing import CliRunner

from gpufleet.cli import main


def groups(command: click.Command, *path: str) -> Iterator[tuple[str, ...]]:
    if isinstance(command, click.Group):
        yield path
        context = click.Context(command)
        for name in command.list_commands(context):
            yield from groups(command.get_command(context, name) or command, *path, name)


def help_of(*path: str) -> str:
    done = CliRunner().invoke(main, [*path, "--help"], terminal_width=80, prog_name="gpufleet")
    assert done.exit_code == 0, done.output
    return done.output


@pytest.mark.parametrize("path", list(groups(main)), ids=lambda path: " ".join(path) or "gpufleet")
def test_no_line_of_a_list_of_commands_is_cut(path: tuple[str, ...]) -> None:
    listed = help_of(*path).partition("\nCommands:\n")[2].partition("\n\n")[0].splitlines()
    assert listed
    assert [line for line in listed if line.endswith("...") or len(line) > 80] == []


def test_help_of_upgrade_shows_the_options_of_its_default_command() -> None:
    def options(text: str) -> str:
        return text.partition("\nOptions:\n")[2].partition("\n\n")[0]

    assert "--to VERSION" in options(help_of("upgrade"))
    assert options(help_of("upgrade")) == options(help_of("upgrade", "start"))
    assert help_of("upgrade").count("Exit status:") == 1
