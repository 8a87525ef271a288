"""`gpufleet cluster create | status | destroy`: clusters of bare hosts."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence

import click

from gpufleet.cli.deploy import (
    INVENTORY_ARGUMENT,
    PYINFRA_OPTIONS,
    YES,
    deploy_file,
    pyinfra_arguments,
    targets_of,
)
from gpufleet.cli.output import output_options, prepare_output, verbose_option
from gpufleet.cli.question import require_confirmation
from gpufleet.core.exit_status import ExitStatus
from gpufleet.core.inventory import CLUSTERS, CONTROL_PLANE, kubeconfig_of
from gpufleet.core.python import python_code, python_module
from gpufleet.core.visible import one_line
from gpufleet.kubernetes.operations.cluster_view import (
    REMOVED,
    Unknown,
    await_cluster,
    not_one_cluster,
    why_not_destroy,
)
from gpufleet.run.cluster_phases import ClusterPhase, nodes_of, run_phases
from gpufleet.run.part import GPUFLEET
from gpufleet.run.report_file import JUNIT, REPORT_FILE
from gpufleet.verify.inventory import Target

NODE_SECONDS = "120"  # a node that was NotReady reports it for some 50 s after recovery
CLUSTER_STATUSES = "Exit status: 0 {success}; 1 {failure}; 2 usage error; 130 interrupted."
JSON_OPTION = click.option(
    "--json", "json_path", metavar="FILE", help="Write the report of all phases."
)


@click.group()
def cluster() -> None:
    """Create, inspect and destroy Kubernetes clusters on bare hosts."""


@cluster.command(
    epilog=CLUSTER_STATUSES.format(
        success="the cluster is up and every check passed",
        failure="a host, the cluster or a check failed",
    )
)
@INVENTORY_ARGUMENT
@YES
@JSON_OPTION
@click.option("--junit", metavar="FILE", help="Write phases and checks as JUnit XML.")
@PYINFRA_OPTIONS
@output_options
@verbose_option
def create(
    inventory: str, yes: bool, json_path: str | None, junit: str | None, options: tuple[str, ...]
) -> None:
    """Make the hosts of INVENTORY a GPU cluster.

    Checks all hosts first and changes none if one is blocked. Then installs driver, container
    toolkit and Kubernetes on the hosts, waits until all are Ready nodes, installs the GPU stack on
    the cluster of the group gpu_cluster, and runs the checks. Safe to run again: existing
    components are kept.
    """
    require_confirmation(yes, options)
    targets = _members(inventory, options)
    if reason := not_one_cluster(targets):
        raise click.UsageError(reason)
    if not yes:
        _ask("Make these hosts a cluster", targets)
    sys.exit(carry_out(creation_phases(inventory, targets, options), json_path, junit))


@cluster.command(
    epilog=CLUSTER_STATUSES.format(
        success="every host is a node and Ready",
        failure="one is not, or the cluster does not respond",
    )
)
@INVENTORY_ARGUMENT
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--wait", default=0.0, metavar="SECONDS", help="Wait until every node is Ready.")
@output_options
def status(inventory: str, as_json: bool, wait: float) -> None:
    """Show the nodes of the cluster of INVENTORY and their GPUs."""
    targets = _members(inventory, ())
    try:
        view = await_cluster(targets, wait)
    except Unknown as error:
        click.echo(error.text, err=True)
        sys.exit(ExitStatus.FAILED)
    if as_json:
        click.echo(json.dumps(view.as_dict(), indent=2))
    else:
        click.echo(view.table())
    sys.exit(ExitStatus.CONVERGED if view.ready else ExitStatus.FAILED)


@cluster.command(
    epilog=CLUSTER_STATUSES.format(
        success="no host is a node", failure="a host was stopped or failed"
    )
)
@INVENTORY_ARGUMENT
@YES
@JSON_OPTION
@click.option(
    "--all", "everything", is_flag=True, help="Remove driver, toolkit and containerd too."
)
@click.option(
    "--ignore-gpu-pods",
    is_flag=True,
    help="Continue even if pods use GPUs or the cluster does not respond.",
)
@PYINFRA_OPTIONS
@output_options
@verbose_option
def destroy(
    inventory: str,
    yes: bool,
    json_path: str | None,
    everything: bool,
    ignore_gpu_pods: bool,
    options: tuple[str, ...],
) -> None:
    """Take the hosts of INVENTORY out of their cluster.

    Resets every node, removes Kubernetes' packages and files, and the kubeconfig if it leads to
    this cluster alone. Driver, container toolkit and containerd stay unless --all is given. Refused
    while pods use GPUs.
    """
    require_confirmation(yes, options)
    targets = _members(inventory, options)
    if not ignore_gpu_pods:
        dry = [*_on_hosts(inventory, targets, "destroy_cluster", options), "--dry"]
        hosts = [target.name for target in targets if not target.is_cluster]
        if reason := why_not_destroy(kubeconfig_of(targets), nodes_of(dry, hosts)):
            click.echo(reason, err=True)
            sys.exit(ExitStatus.FAILED)
    if not yes:
        _ask("Destroy the cluster of these hosts", targets)
    names = ["destroy_cluster", *(["remove"] if everything else [])]
    phases = [
        ClusterPhase(REMOVED[name], _on_hosts(inventory, targets, name, options)) for name in names
    ]
    sys.exit(carry_out(phases, json_path, None))


def carry_out(phases: Sequence[ClusterPhase], json_path: str | None, junit: str | None) -> int:
    """Run the phases until one fails; returns its exit status, or else 0. Raises click.UsageError
    first if a report cannot be written."""
    file = prepare_output(json_path, "--json", REPORT_FILE)
    return run_phases(phases, file, prepare_output(junit, "--junit", JUNIT))


def creation_phases(
    inventory: str, targets: Sequence[Target], options: Sequence[str]
) -> list[ClusterPhase]:
    """The phases of `create`. The API exists once the hosts are nodes."""
    phases = [
        ClusterPhase("Preflight", _on_hosts(inventory, targets, "preflight", options)),
        ClusterPhase("Hosts", _on_hosts(inventory, targets, "gpu_node", options)),
    ]
    networks = [target.data.get("kubernetes_network") for target in targets]
    if kubeconfig_of(targets) and "none" not in networks:  # none: the user installs one
        shown = [*python_code(GPUFLEET), "cluster", "status", inventory, "--wait", NODE_SECONDS]
        phases.append(ClusterPhase("Nodes", shown))
    if any(CLUSTERS in target.groups for target in targets):
        words = pyinfra_arguments(inventory, [deploy_file("gpu_cluster")], [CLUSTERS], options)
        phases.append(ClusterPhase("GPU stack", [*python_module("pyinfra"), *words], again=True))
    checks = [*python_code(GPUFLEET), "verify", inventory]
    return [*phases, ClusterPhase("Checks", checks, checks=True)]


def _on_hosts(
    inventory: str, targets: Sequence[Target], name: str, options: Sequence[str]
) -> list[str]:
    """pyinfra's command for a deploy on the hosts, without the clusters of the inventory."""
    hosts = [target.name for target in targets if not target.is_cluster]
    limit = hosts if len(hosts) < len(targets) else []
    words = pyinfra_arguments(inventory, [deploy_file(name)], limit, options)
    return [*python_module("pyinfra"), *words]


def _ask(question: str, targets: Sequence[Target]) -> None:
    """End the process with status 1 unless the answer is yes."""
    names = ", ".join(one_line(target.name) for target in targets if not target.is_cluster)
    click.confirm(f"{question}: {names}?", abort=True, err=True)


def _members(inventory: str, options: Sequence[str]) -> list[Target]:
    for option in ("--limit", "--exclude"):
        if any(each.partition("=")[0] == option for each in options):
            raise click.UsageError(
                f"A cluster is created and destroyed whole: {option} is refused."
            )
    targets = targets_of(inventory, ())
    if not any(CONTROL_PLANE in target.groups for target in targets):
        text = f"{inventory} has no host in the group {CONTROL_PLANE}. For the GPU stack of a "
        text += f"cluster that gpufleet did not make: gpufleet status {inventory}"
        raise click.UsageError(one_line(text))
    return targets
