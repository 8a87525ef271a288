"""`gpufleet completion`: print the script with which a shell completes commands and options."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

SHELLS = ("bash", "zsh", "fish")
COMPLETION_VARIABLE = "_GPUFLEET_COMPLETE"  # click reads it: the program's name in capitals


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
def completion(shell: str) -> None:
    """Print the completion script of a shell.

    \b
    bash: gpufleet completion bash > ~/.local/share/bash-completion/completions/gpufleet
    zsh:  gpufleet completion zsh > ~/.zfunc/_gpufleet
    fish: gpufleet completion fish > ~/.config/fish/completions/gpufleet.fish
    """
    from gpufleet.cli import main

    found = get_completion_class(shell)
    assert found is not None
    click.echo(found(main, {}, "gpufleet", COMPLETION_VARIABLE).source())
