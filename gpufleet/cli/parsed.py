"""The options that a user gives pyinfra, as pyinfra's own parser has them.

Parsed by another process: pyinfra's command makes gevent replace parts of the standard library.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import click

from gpufleet.core.python import python_code
from gpufleet.run.invocation import Invocation, parse

INVENTORY, DEPLOY = "inventory", "deploy.py"  # stand for those of the run
MAIN = "from gpufleet.cli.parsed import print_parsed; print_parsed()"


def print_parsed() -> None:
    """Parse the command line on standard input."""
    asked = parse(json.loads(input()))
    print("\n" + json.dumps(asdict(asked)))  # below what --support prints


def parsed(options: Sequence[str]) -> Invocation:
    """The invocation that has these options. Raises click.UsageError."""
    words = json.dumps([*options, INVENTORY, DEPLOY])  # not as arguments: they may hold secrets
    done = subprocess.run(
        python_code(MAIN), input=words, stdout=subprocess.PIPE, text=True, check=False
    )
    if done.returncode:
        raise click.UsageError("pyinfra cannot parse the options that follow `--`.")
    found = json.loads(done.stdout.splitlines()[-1])
    values: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in found.items()}
    return Invocation(**values)
