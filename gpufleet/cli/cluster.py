"""`gpufleet sandbox cluster`: Kubernetes control planes on this machine."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

import click

from gpufleet.sandbox.cluster import Cluster, every_cluster
from gpufleet.sandbox.cluster.versions import versions
from gpufleet.sandbox.errors import SandboxError, kinds

F = TypeVar("F", bound=Callable[..., Any])


def _named(command: F) -> F:
    """Give the command --name; a SandboxError becomes exit status 1."""

    @click.option(
        "--name", default="default", envvar="GPUFLEET_CLUSTER", show_default=True,
        help="Several clusters can be up, each under its name.",
    )  # fmt: skip
    @wraps(command)
    def wrapped(**arguments: Any) -> Any:
        try:
            return command(**arguments)
        except SandboxError as error:
            raise click.ClickException(str(error)) from error

    return cast(F, wrapped)


@click.group()
def cluster() -> None:
    """Control planes for tests: real etcd and Kubernetes servers, nodes simulated by kwok."""


@cluster.command()
@click.option(
    "--kubernetes", default="1.36", show_default=True, metavar="MINOR",
    help=f"One of {', '.join(versions().kubernetes.releases)}.",
)  # fmt: skip
@click.option("--nodes", default=3, show_default=True, type=click.IntRange(0, 500))
@click.option("--gpus", default=8, show_default=True, type=click.IntRange(0, 16), help="A node.")
@click.option(
    "--labels/--no-labels", default=True, help="Whether nodes are labelled as NFD would do it."
)
@_named
def up(name: str, kubernetes: str, nodes: int, gpus: int, labels: bool) -> None:
    """Start a control plane; its programs are built the first time, which takes minutes."""
    began = time.monotonic()

    def progress(message: str) -> None:
        click.echo(f"{time.monotonic() - began:6.1f} s  {message}", err=True)

    found = Cluster.up(name, kubernetes, nodes, gpus, labels, progress)
    progress(f"Kubernetes {found.version} is up with {nodes} nodes")
    click.echo(f"export KUBECONFIG={found.kubeconfig}")


@cluster.command()
@click.option("--all", "everything", is_flag=True, help="All of them.")
@_named
def down(name: str, everything: bool) -> None:
    """End the processes of a cluster and remove its data; what was built stays."""
    found = every_cluster() if everything else [Cluster.find(name)]
    for one in found:
        if one is None:
            raise SandboxError(kinds.CLUSTER_NOT_UP(name=name))
        click.echo(f"ended {one.down()} processes of the cluster {one.name!r}")


@cluster.command()
@click.option("--json", "as_json", is_flag=True)
@_named
def status(name: str, as_json: bool) -> None:
    """Whether a cluster is up, its version, its kubeconfig and its processes."""
    found = Cluster.find(name)
    if found is None:
        raise SandboxError(kinds.CLUSTER_NOT_UP(name=name))
    processes = {each.name: each.pid if each.alive else None for each in found.processes}
    data = {
        "name": found.name,
        "up": found.alive,
        "kubernetes": found.version,
        "kubeconfig": str(found.kubeconfig),
        "helm": str(found.helm),
        "processes": processes,
        "ready_nodes": sorted(found.ready_nodes()) if found.alive else [],
    }
    if as_json:
        click.echo(json.dumps(data, indent=2))
    else:
        for key, value in data.items():
            click.echo(f"{key}: {value}")
    if not found.alive:
        raise SystemExit(1)
