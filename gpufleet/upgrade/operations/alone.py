"""deploys/upgrade_driver.py on pyinfra's command line, without a step: a run is started."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

from gpufleet.core.python import python_code
from gpufleet.run.invocation import Invocation, read_invocation

COMMAND = "sys.argv[0] = 'gpufleet'; from gpufleet.cli import main; main()"


def start_run(prepare: Callable[[], None]) -> None:
    """Replace pyinfra by `gpufleet upgrade` with the same inventory, limit and options; return
    where that is no such command line. `prepare`: what is done right before, as to the terminal.

    pyinfra carries a deploy out on all hosts side by side, each step on every host before the next:
    canaries, waves and drains cannot be operations of it.
    """
    words = run_words(read_invocation())
    if words:
        prepare()
        sys.stdout.flush()
        sys.stderr.flush()
        program = python_code(COMMAND)
        os.execv(program[0], [*program, *words])


def run_words(asked: Invocation) -> list[str]:
    """The words of the command; none where other deploys are run too, or hosts are excluded."""
    if not asked.inventory or len(asked.deploys) != 1 or asked.exclude:
        return []
    chosen = [word for pattern in asked.limit for word in ("--limit", pattern)]
    how = [*(["--plan"] if asked.dry else []), *(["--yes"] if asked.yes else [])]
    options = ["--", *asked.options] if asked.options else []
    return ["upgrade", "start", asked.inventory, *chosen, *how, *options]
