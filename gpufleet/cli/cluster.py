"""`gpufleet cluster create | status | destroy`: clusters of bare hosts."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from gpufleet.cli.cluster_phases import Phase, carry_out
from gpufleet.cli.cluster_view import (
    CREATED,
    Unknown,
    kubeconfig_of,
    read_cluster,
    why_not_destroy,
)
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
STATUSES = "Exit status: 0 {success}; 1 {failure}; 2 usage error; 130 interrupted."
JSON = click.option("--json", "json_path", metavar="FILE", help="Write the report of all phases.")


@click.group()
def cluster() -> None:
    """Kubernetes clusters of bare hosts."""


@cluster.command(
    epilog=STATUSES.format(
        success="the cluster is up and every check passed",
        failure="a host, the cluster or a check failed",
    )
)
@INVENTORY
@YES
@JSON
@click.option("--junit", metavar="FILE", help="Write phases and checks as JUnit XML.")
@OPTIONS
def create(
    inventory: str, yes: bool, json_path: str | None, junit: str | None, options: tuple[str, ...]
) -> None:
    """Make the hosts of INVENTORY a GPU cluster.

    Checks all hosts first and changes none if one is blocked. Then installs driver, container
    toolkit and Kubernetes on the hosts, the GPU stack on the cluster of the group gpu_cluster, and
    runs the checks. May be repeated: what is there stays.
    """
    confirmed(yes, options)
    targets = _members(inventory)
    sys.exit(carry_out(creation(inventory, targets, options, yes=yes), json_path, junit))


@cluster.command(
    epilog=STATUSES.format(
        success="every node is Ready", failure="a node is not, or the cluster does not answer"
    )
)
@INVENTORY
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def status(inventory: str, as_json: bool) -> None:
    """Show the nodes of the cluster of INVENTORY and their GPUs."""
    targets = _members(inventory)
    try:
        view = read_cluster(kubeconfig_of(targets))
    except Unknown as error:
        click.echo(str(error), err=True)
        sys.exit(ExitStatus.FAILED)
    if as_json:
        click.echo(json.dumps(view.as_dict(), indent=2))
    else:
        click.echo(view.table())
    sys.exit(ExitStatus.CONVERGED if view.ready else ExitStatus.FAILED)


@cluster.command(
    epilog=STATUSES.format(
        success="no host is a node any more", failure="a host was stopped or failed"
    )
)
@INVENTORY
@YES
@JSON
@click.option("--all", "everything", is_flag=True, help="Remove driver and toolkit too.")
@click.option(
    "--ignore-gpu-pods",
    is_flag=True,
    help="Also where pods use GPUs, or the cluster does not answer.",
)
@OPTIONS
def destroy(
    inventory: str,
    yes: bool,
    json_path: str | None,
    everything: bool,
    ignore_gpu_pods: bool,
    options: tuple[str, ...],
) -> None:
    """Take the hosts of INVENTORY out of their cluster.

    Resets every node, removes Kubernetes' packages and files and the kubeconfig. Driver and
    container toolkit stay unless --all is given. Refused while pods use GPUs.
    """
    confirmed(yes, options)
    targets = _members(inventory)
    access = kubeconfig_of(targets)
    if not ignore_gpu_pods and (reason := why_not_destroy(access)):
        click.echo(reason, err=True)
        sys.exit(ExitStatus.FAILED)
    names = ["destroy_cluster", *(["remove"] if everything else [])]
    phases = [
        Phase(CREATED[name], _on_hosts(inventory, targets, name, options, yes=yes))
        for name in names
    ]
    code = carry_out(phases, json_path, None)
    if code == ExitStatus.CONVERGED and access:
        Path(access).expanduser().unlink(missing_ok=True)
    sys.exit(code)


def creation(
    inventory: str, targets: Sequence[Target], options: Sequence[str], *, yes: bool
) -> list[Phase]:
    """The phases of `create`: the API is there once the hosts are nodes."""

    def on_hosts(name: str, *, sure: bool) -> list[str]:
        return _on_hosts(inventory, targets, name, options, yes=sure)

    phases = [
        Phase("Preflight", on_hosts("preflight", sure=True)),
        Phase("Hosts", on_hosts("gpu_node", sure=yes)),
    ]
    if any(CLUSTERS in target.groups for target in targets):
        words = arguments(inventory, [deploy_file("gpu_cluster")], [CLUSTERS], options, yes=yes)
        phases.append(Phase("GPU stack", [*python_module("pyinfra"), *words]))
    checks = [*python_code(VERIFY), "verify", inventory]
    return [*phases, Phase("Checks", checks, checks=True)]


def _on_hosts(
    inventory: str, targets: Sequence[Target], name: str, options: Sequence[str], *, yes: bool
) -> list[str]:
    """pyinfra's command for a deploy on the hosts, without the clusters of the inventory."""
    hosts = [target.name for target in targets if not target.is_cluster]
    limit = hosts if len(hosts) < len(targets) else []
    words = arguments(inventory, [deploy_file(name)], limit, options, yes=yes)
    return [*python_module("pyinfra"), *words]


def _members(inventory: str) -> list[Target]:
    targets = targets_of(inventory, ())
    if not any(CONTROL_PLANE in target.groups for target in targets):
        raise click.UsageError(f"{inventory} has no host in the group {CONTROL_PLANE}.")
    return targets
