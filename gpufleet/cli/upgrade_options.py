"""Options of pyinfra that `gpufleet upgrade` hands on to each of its steps."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import click

from gpufleet.core.python import python_code
from gpufleet.run.invocation import Invocation, parse

INVENTORY, DEPLOY = "inventory", "deploy.py"  # stand for those of a step
# In a process of its own: pyinfra's parser makes gevent replace parts of the standard library.
MAIN = "from gpufleet.cli.upgrade_options import print_parsed; print_parsed()"


def check_options(options: Sequence[str]) -> None:
    """Raises click.UsageError for options that would make a step another one."""
    if options and (problem := why_refused(_parsed(options))):
        raise click.UsageError(problem)


def why_refused(asked: Invocation) -> str:
    """Why a run cannot have these options; "" if it can."""
    if asked.dry:
        return "A step with --dry changes nothing: use --plan."
    if asked.limit or asked.exclude:
        return "A run chooses the hosts of each step: use --limit of gpufleet, before `--`."
    if (asked.inventory, asked.operations) != (INVENTORY, (DEPLOY,)):
        return "Options of pyinfra alone follow `--`, each with its value; no inventory, no deploy."
    if any(word.strip().startswith("upgrade_") for word in asked.data):
        return "Set upgrade_* keys in the inventory: --data reaches single steps."
    return ""


def print_parsed() -> None:
    """Parse the command line on standard input."""
    print(json.dumps(asdict(parse(json.loads(input())))))


def _parsed(options: Sequence[str]) -> Invocation:
    words = json.dumps([*options, INVENTORY, DEPLOY])  # not as arguments: they may hold secrets
    done = subprocess.run(
        python_code(MAIN), input=words, stdout=subprocess.PIPE, text=True, check=False
    )
    if done.returncode:
        raise click.UsageError("pyinfra cannot parse the options that follow `--`.")
    found = json.loads(done.stdout)
    values: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in found.items()}
    return Invocation(**values)
