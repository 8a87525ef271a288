"""The question that `apply` and `remove` ask before they change anything."""

from __future__ import annotations

import ast
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from gpufleet.cli.pyinfra_options import parse_options
from gpufleet.core.names import count_noun
from gpufleet.core.paths import shipped_path

ASKING = frozenset({"--same-sudo-password", "--ssh-password-prompt"})  # of pyinfra


@dataclass(frozen=True, slots=True)
class Confirmation:
    """A question before a run, below the plan that these deploys show. `counts`: the user must type
    the number of hosts if there are several."""

    text: str
    deploys: tuple[str, ...]
    options: tuple[str, ...] = ()
    counts: bool = False

    def put(self, planned: int | None, *, own: bool) -> None:
        """Ask, and end the process unless the answer is yes. `planned`: number of hosts that the
        plan changes, None if unknown; `own`: the deploys have operations that no plan shows."""
        if planned == 0 and not own:
            return
        if not self.counts or planned is None or planned < 2:
            click.confirm(self.text, abort=True, err=True)
            return
        text = f"{self.text} It is on {count_noun(planned, 'host')}. Type their number to go on"
        typed = click.prompt(text, default="", show_default=False, err=True)
        if typed.strip() != str(planned):
            raise click.Abort


def require_confirmation(yes: bool, options: Sequence[str]) -> None:
    """Raises click.UsageError for a run that cannot be confirmed, and for wrong options."""
    given = parse_options(options)
    if sys.stdin.isatty():
        return
    for option in ASKING.intersection(given):
        raise click.UsageError(
            f"{option} asks, and standard input is not a terminal. Set the password in the "
            "inventory, from a vault."
        )
    if not yes:
        raise click.UsageError(
            "The changes need a confirmation, and standard input is not a terminal. "
            "Add --yes to skip it."
        )


def has_operations(deploy: Path) -> bool:
    """True if a file in deploys/ does more than include gpufleet's deploy of that name."""
    if deploy.resolve().parent == shipped_path("deploys").resolve():
        return False
    try:
        lines = ast.parse(deploy.read_text("utf-8")).body
    except (OSError, ValueError, SyntaxError):
        return True
    return any(
        not isinstance(line, ast.Import | ast.ImportFrom)
        and not ast.unparse(line).startswith(("include(", "'", '"'))
        for line in lines
    )
