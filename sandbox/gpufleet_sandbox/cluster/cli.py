"""`gpufleet sandbox cluster`: Kubernetes control planes on this machine."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, NoReturn, TypeVar, cast

import click
from kubernetes.client.exceptions import ApiException
from urllib3.exceptions import HTTPError

from gpufleet_sandbox import GPU_KINDS, Sandbox
from gpufleet_sandbox.cluster import Cluster, every_cluster
from gpufleet_sandbox.cluster.build import have_program, have_server, kubernetes_servers, program
from gpufleet_sandbox.cluster.launch import LOOPBACK
from gpufleet_sandbox.cluster.node_images import device_plugin, load_image, probe
from gpufleet_sandbox.cluster.programs import OTHER_PROGRAMS, SERVERS, Choice, choose
from gpufleet_sandbox.cluster.real_node import join
from gpufleet_sandbox.cluster.versions import versions
from gpufleet_sandbox.errors import SandboxError, kinds
from gpufleet_sandbox.gpus import MODELS, MOST
from gpufleet_sandbox.inventory import kubeconfig
from gpufleet_sandbox.kubernetes import cluster as real_cluster
from gpufleet_sandbox.kubernetes.build import COMMANDS
from gpufleet_sandbox.notices import collected
from gpufleet_sandbox.paths import cache_dir
from gpufleet_sandbox.state import DEFAULT
from gpufleet_sandbox.status import click_error

F = TypeVar("F", bound=Callable[..., Any])


def _named(command: F) -> F:
    """Add --name to the command; a SandboxError becomes the exit status."""

    @click.option(
        "--name", default="default", envvar="GPUFLEET_CLUSTER", show_default=True,
        help="Name of the cluster; several can be up at once.",
    )  # fmt: skip
    @wraps(command)
    def wrapped(**arguments: Any) -> Any:
        with _reporting():
            return command(**arguments)

    return cast(F, wrapped)


@contextmanager
def _reporting() -> Iterator[None]:
    """A SandboxError becomes the exit status; warnings are printed at the end, after progress."""
    with collected() as warnings:
        try:
            yield
        except SandboxError as error:
            raise click_error(error) from error
        finally:
            for finding in warnings:
                click.secho(f"\n{finding}", fg="yellow", err=True)


def _progress() -> Callable[[str], None]:
    start = time.monotonic()
    return lambda message: click.echo(f"{time.monotonic() - start:6.1f} s  {message}", err=True)


@click.group()
def cluster() -> None:
    """Clusters for tests: of kubeadm, or with simulated nodes.

    Control planes are real etcd and Kubernetes servers; kwok simulates nodes.
    """


@cluster.command()
@click.option(
    "--kubernetes", default="1.36", show_default=True, metavar="MINOR",
    help=f"One of {', '.join(versions().kubernetes.releases)}.",
)  # fmt: skip
@click.option(
    "--nodes", default=3, show_default=True, type=click.IntRange(0, 500), help="Simulated nodes."
)
@click.option(
    "--gpus", metavar="NUMBER|LIST",
    help="Per node: 0 to 16, default 8. With --real the models and numbers of the first node, the "
    f"second, …, as h100:8,a100:4; further nodes have the last. Models: {', '.join(MODELS)}.",
)  # fmt: skip
@click.option(
    "--labels/--no-labels",
    default=True,
    help="Label nodes with GPUs as Node Feature Discovery does.",
)
@click.option(
    "--real-node",
    metavar="HOST",
    type=click.Choice(GPU_KINDS),
    help="Join this sandbox host with a real kubelet; starts the host if it is not up.",
)
@click.option(
    "--real",
    is_flag=True,
    help="Make sandbox hosts a kubeadm cluster; --nodes is their number, the first is the control "
    "plane.",
)
@click.option(
    "--sandbox", default=DEFAULT, envvar="GPUFLEET_SANDBOX", show_default=True,
    help="Sandbox of the real node.",
)  # fmt: skip
@_named
def up(
    name: str, kubernetes: str, nodes: int, gpus: str | None, labels: bool,
    real_node: str | None, real: bool, sandbox: str,
) -> None:  # fmt: skip
    """Start a control plane, or a kubeadm cluster (--real).

    The first run fetches or builds its programs.
    """
    progress = _progress()
    if real:
        _up_real(Sandbox(sandbox, progress), kubernetes, max(nodes, 1), gpus or "")
    number = _number(gpus)
    host = Sandbox(sandbox, progress).up([real_node]).host(real_node) if real_node else None
    address = host.gateway if host else LOOPBACK
    found = Cluster.up(name, kubernetes, nodes, number, labels, progress, address)
    if host:
        join(found, host, progress)
        for image in (probe(), device_plugin(progress)):
            load_image(image, host)
            progress(f"loaded the image {image.name} on {host.name}")
    progress(f"Kubernetes {found.version} is up with {nodes} simulated nodes")
    click.echo(f"export KUBECONFIG={found.kubeconfig}")


def _up_real(box: Sandbox, kubernetes: str, nodes: int, gpus: str) -> NoReturn:
    """Make hosts a kubeadm cluster; ends with the exit status of `gpufleet cluster create`."""
    known = versions().kubernetes.kubeadm
    if kubernetes not in known:
        raise click.UsageError(f"--real has Kubernetes {', '.join(known)}; not {kubernetes}.")
    try:
        status = real_cluster.up(box, kubernetes, nodes, box.progress, gpus)
    except ValueError as error:
        raise click.UsageError(f"--gpus {error}.") from error
    if status == 0:
        click.echo(f"export KUBECONFIG={kubeconfig(box.name)}")
    raise SystemExit(status)


def _number(gpus: str | None) -> int:
    """GPUs of each simulated node."""
    if gpus is not None and not (gpus.isdecimal() and int(gpus) <= MOST):
        raise click.UsageError(
            f"--gpus {gpus!r}: simulated nodes have 0 to {MOST}; models need --real."
        )
    return 8 if gpus is None else int(gpus)


@cluster.command()
@click.option(
    "--kubernetes", "minors", multiple=True, default=["1.36"], show_default=True, metavar="MINOR",
    help="Version to build; can be repeated.",
)  # fmt: skip
@click.option(
    "--for-tests",
    is_flag=True,
    help="Include all programs that this project's tests use, and the kubelet.",
)
@click.option("--real", is_flag=True, help="Include what `up --real` needs.")
@click.option(
    "--stack",
    is_flag=True,
    help="Include the programs in the images of the GPU stack; with --for-tests those of extended "
    "tests, too.",
)
@click.option(
    "--check",
    is_flag=True,
    help="Print missing programs without building them; exit status 1 if any is missing.",
)
def build(minors: tuple[str, ...], for_tests: bool, real: bool, stack: bool, check: bool) -> None:
    """Fetch or build the programs of clusters before `up`.

    Fetches official binaries with known checksums if available, and builds the other programs from
    their Go modules, which takes minutes.
    """
    home, progress = cache_dir() / "go", _progress()
    known = versions().programs
    names = [name for name in known if not known[name].needed_by]
    names = names if for_tests else [*OTHER_PROGRAMS, "helm"]
    more = {"stack": stack, "extended": stack and for_tests}
    names += [name for name in known if more.get(known[name].needed_by)]
    with _reporting():
        servers = dict(_servers(choose(minor, progress), for_tests, real) for minor in minors)
        built = (version.rpartition(".")[0] for version in servers)
        names += versions().programs_of(built) if real else []
        if check:
            missing = [name for name in names if not have_program(name, home)]
            missing += [
                f"{name} {version}"
                for version, wanted in servers.items()
                for name in wanted
                if not have_server(name, version, home)
            ]
            click.echo("\n".join(missing), nl=bool(missing))
            raise SystemExit(bool(missing))
        for version, wanted in servers.items():
            kubernetes_servers(wanted, version, home, progress)
        for name in names:
            program(name, home, progress)


def _servers(choice: Choice, for_tests: bool, real: bool) -> tuple[str, list[str]]:
    """Version, and the servers not in KUBEBUILDER_ASSETS; for tests also the kubelet, for `real`
    all that kubeadm installs."""
    minor, known = choice.version.rpartition(".")[0], versions().kubernetes
    wanted = list(SERVERS)
    if real and minor in known.kubeadm:
        wanted += COMMANDS
    elif for_tests and minor in known.real_nodes:
        wanted += ["kubelet"]
    return choice.version, [name for name in wanted if name not in choice.given]


@cluster.command()
@click.option("--all", "everything", is_flag=True, help="Take down all clusters.")
@_named
def down(name: str, everything: bool) -> None:
    """Stop a cluster and remove its data, but not the cached programs."""
    found = every_cluster() if everything else [Cluster.find(name)]
    for one in found:
        if one is None:
            raise SandboxError(kinds.CLUSTER_NOT_UP(name=name))
        click.echo(f"ended {one.down()} processes of the cluster {one.name!r}")


@cluster.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@_named
def status(name: str, as_json: bool) -> None:
    """Show a cluster's state, version, kubeconfig and processes."""
    found = Cluster.find(name)
    if found is None:
        raise SandboxError(kinds.CLUSTER_NOT_UP(name=name))
    data = {
        "name": found.name,
        "up": found.alive,
        "kubernetes": found.version,
        "kubeconfig": str(found.kubeconfig),
        "helm": str(found.helm),
        "logs": str(found.folder),
        "processes": {each.name: each.pid if each.alive else None for each in found.processes},
        "ready_nodes": _ready_nodes(found) if found.alive else [],
    }
    click.echo(json.dumps(data, indent=2) if as_json else _as_text(data))
    if not found.alive:
        raise SystemExit(1)


def _ready_nodes(found: Cluster) -> list[str]:
    try:
        return sorted(found.ready_nodes())
    except (ApiException, HTTPError) as error:
        raise SandboxError(
            kinds.CLUSTER_SILENT(kubeconfig=found.kubeconfig, reason=error)
        ) from error


def _as_text(data: dict[str, Any]) -> str:
    """One line for each field; stopped processes are listed as ended."""
    shown = {
        **data,
        "up": "yes" if data["up"] else "no",
        "processes": ", ".join(
            f"{name} {pid or 'ended'}" for name, pid in data["processes"].items()
        ),
        "ready_nodes": ", ".join(data["ready_nodes"]) or "none",
    }
    return "\n".join(f"{key.replace('_', ' '):12} {value}" for key, value in shown.items())
