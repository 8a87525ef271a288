"""`gpufleet cluster create`: from bare hosts to a verified GPU cluster, in one command."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence

import click

from gpufleet.cli.deploy import (
    INVENTORY,
    OPTIONS,
    YES,
    arguments,
    confirmed,
    deploy_file,
    targets_of,
)
from gpufleet.core.exit_status import ExitStatus
from gpufleet.core.inventory import CLUSTERS, CONTROL_PLANE
from gpufleet.core.python import python_code, python_module
from gpufleet.verify.inventory import Target

VERIFY = "from gpufleet.cli import main; main(prog_name='gpufleet')"
EPILOG = (
    "Exit status: 0 the cluster is up and every check passed; 1 a host, cluster or check failed; 2 "
    "usage error; 130 interrupted."
)


@click.group()
def cluster() -> None:
    """Kubernetes clusters of bare hosts."""


@cluster.command(epilog=EPILOG)
@INVENTORY
@YES
@click.option("--junit", metavar="FILE", help="Write the results of the checks as JUnit XML.")
@OPTIONS
def create(inventory: str, yes: bool, junit: str | None, options: tuple[str, ...]) -> None:
    """Make the hosts of INVENTORY a GPU cluster.

    Installs driver, container toolkit and Kubernetes on the hosts, then the GPU stack on the
    cluster of the group gpu_cluster, then runs the checks. May be repeated: what is there stays.
    """
    confirmed(yes, options)
    targets = targets_of(inventory, ())
    if not any(CONTROL_PLANE in target.groups for target in targets):
        raise click.UsageError(f"{inventory} has no host in the group {CONTROL_PLANE}.")
    for phase, words in phases(inventory, targets, options, yes=yes, junit=junit):
        click.echo(f"== {phase}", err=True)
        status = subprocess.run(words, check=False).returncode
        if status:
            click.echo(f"{phase}: failed; nothing after it was begun", err=True)
            sys.exit(status if status in set(ExitStatus) else ExitStatus.FAILED)


def phases(
    inventory: str,
    targets: Sequence[Target],
    options: Sequence[str],
    *,
    yes: bool,
    junit: str | None,
) -> list[tuple[str, list[str]]]:
    """Name and command of each phase: the cluster's API is there once its hosts are."""
    pyinfra = python_module("pyinfra")

    def deploy(name: str) -> list[str]:
        return [*pyinfra, *arguments(inventory, [deploy_file(name)], (), options, yes=yes)]

    found = [("Hosts", deploy("gpu_node"))]
    if any(CLUSTERS in target.groups for target in targets):
        found.append(("GPU stack", deploy("gpu_cluster")))
    report = ["--junit", junit] if junit else []
    checks = [*python_code(VERIFY), "verify", inventory, *report]
    return [*found, ("Checks", checks)]
