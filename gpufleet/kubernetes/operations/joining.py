"""Starts a control plane, and joins hosts to it."""

from __future__ import annotations

from collections.abc import Callable

from pyinfra import host, state
from pyinfra.api import FunctionCommand, Host, State, StringCommand

from gpufleet.core.paths import expand_user_path
from gpufleet.core.private_file import write_private
from gpufleet.core.stopped import Stopped
from gpufleet.core.versions import version_tuple
from gpufleet.facts.files import HOME, INCOMING
from gpufleet.host.files import run_stamp
from gpufleet.host.operation import Commands, host_operation
from gpufleet.host.shell import (
    explain_finding,
    quote_command,
    script_command,
    stop_command,
    upload_command,
)
from gpufleet.kubernetes.access import administrator_kubeconfig, may_replace
from gpufleet.kubernetes.findings import access, cluster, hosts
from gpufleet.kubernetes.findings import joining as found
from gpufleet.kubernetes.images import IMAGES_FOLDER as UPLOADS
from gpufleet.kubernetes.kubeadm import JoinToken, init_configuration, join_configuration
from gpufleet.kubernetes.notes import (
    JOINED,
    KUBERNETES_BEGUN_PATH,
    KUBERNETES_READY_PATH,
    LEAVING,
    MODULES,
    NETWORKED,
    SYSCTLS,
)
from gpufleet.kubernetes.operations.tokens import ask_control_plane, token_of
from gpufleet.kubernetes.plan import KubernetesPlan
from gpufleet.kubernetes.settings import KubernetesSettings

ADMIN = "/etc/kubernetes/admin.conf"
READY_SECONDS = 180
NETWORK = "kube-flannel"  # namespace of templates/kubernetes/flannel.yaml.j2


@host_operation
def prepare_kernel(plan: KubernetesPlan) -> Commands:
    """
    Load the kernel's modules and settings.

    + plan: of the host
    """
    if plan.joined and not plan.files:
        host.noop("the kernel is prepared")
        return
    message = explain_finding(host.name, hosts.PREPARE_FAILED())
    yield script_command("kubernetes/prepare", message, MODULES, SYSCTLS)


@host_operation
def start_control_plane(
    plan: KubernetesPlan, settings: KubernetesSettings, version: Callable[[], str | None]
) -> Commands:
    """
    Start the first control plane of the cluster.

    + plan: of the host
    + settings: of the role
    + version: installed version, known when the step runs
    """
    if not plan.initiates:
        host.noop("the control plane runs" if plan.joined else "the cluster does not begin here")
        return
    if plan.reset:
        yield reset_command(plan.network)
    if endpoint := settings.endpoint:
        answers = cluster.ENDPOINT_ANSWERS(version="see below", endpoint=endpoint)
        yield script_command("kubernetes/unanswered", explain_finding(host.name, answers), endpoint)
    text = init_configuration(settings, version() or plan.version, plan.api)
    yield from _kubeadm("init", text, plan)


@host_operation
def join_worker(
    plan: KubernetesPlan, settings: KubernetesSettings, version: Callable[[], str | None]
) -> Commands:
    """
    Join the cluster of the control plane, with a token that lives for minutes.

    + plan: of the host
    + settings: of the role
    + version: installed version, known when the step runs
    """
    if plan.part != "worker" or plan.joined:
        host.noop("the host is a node")
        return
    if not state.is_executing:
        yield quote_command("true")  # the token is made when the host joins
        return
    if plan.reset:
        yield reset_command(plan.network)
    token = token_of(plan.sources)
    problem = stop_if_newer(version() or plan.version, token)
    if problem:
        yield problem
        return
    yield from kubeadm_join(plan, settings, token)


def stop_if_newer(installed: str, token: JoinToken) -> StringCommand | None:
    """The command that stops a host with a newer minor than its control plane's."""
    if version_tuple(installed)[:2] <= version_tuple(token.version)[:2]:
        return None
    ahead = cluster.VERSION_AHEAD(installed=installed, cluster=token.version)
    return stop_command(host.name, ahead)


def kubeadm_join(
    plan: KubernetesPlan, settings: KubernetesSettings, token: JoinToken, *done: str
) -> Commands:
    """The commands of `kubeadm join`. `done`: files that exist then."""
    yield from _kubeadm("join", join_configuration(settings, token, plan.api), plan, *done)


@host_operation
def install_network(plan: KubernetesPlan, manifest: str) -> Commands:
    """
    Install the network between pods, from the control plane.

    + plan: of the host
    + manifest: Kubernetes objects
    """
    if not plan.networks:
        host.noop("the network is installed, or not gpufleet's to install here")
        return
    path = f"{INCOMING}/{run_stamp()}.yaml"
    yield upload_command(manifest.encode(), path)
    message = explain_finding(host.name, found.NETWORK_FAILED(network="flannel"))
    yield script_command("kubernetes/apply", message, path, NETWORKED)


@host_operation
def wait_ready(plan: KubernetesPlan) -> Commands:
    """
    Wait until the host's node is Ready and the network of its pods runs.

    + plan: of the host
    """
    if not plan.waits:
        host.noop("the node was Ready, or its network is not gpufleet's")
        return
    message = explain_finding(host.name, found.NODE_NOT_READY(seconds=READY_SECONDS))
    yield script_command(
        "kubernetes/ready", message, str(READY_SECONDS), NETWORK, KUBERNETES_READY_PATH
    )


@host_operation
def fetch_access(plan: KubernetesPlan, path: str | None) -> Commands:
    """
    Write the administrator's kubeconfig on this machine, readable by its owner alone.

    + plan: of the host
    + path: of the file; None writes no file
    """
    if path is None or plan.part != "control-plane":
        host.noop("no kubeconfig is wanted of this host")
        return
    yield FunctionCommand(_fetch, (path, plan.leads), {})


def _fetch(state: State, host: Host, path: str, leads: bool) -> bool:
    """Write the file if it differs. A further control plane's file names another user, so it is
    written only if no file exists yet. It is never printed, not even at -vvv."""
    file = expand_user_path(path)
    if path.startswith("~") and str(file) == path:
        raise Stopped(access.KUBECONFIG_NOT_WRITTEN(path=path, problem="no such user"))
    text = _access(host)
    try:
        there = file.read_text("utf-8", "replace") if file.is_file() else ""
        if not may_replace(there, text):
            problem = "it has something other than only the access to this cluster"
            raise Stopped(access.KUBECONFIG_NOT_WRITTEN(path=path, problem=problem))
        if leads or not there.strip():
            write_private(file, text)
    except OSError as error:
        problem = error.strerror or str(error)
        raise Stopped(access.KUBECONFIG_NOT_WRITTEN(path=path, problem=problem)) from error
    return True


def _access(host: Host) -> str:
    """The administrator's kubeconfig of a control plane: certificates and a server, nothing that
    runs programs or reads other files here. Raises Stopped."""
    try:
        return administrator_kubeconfig(ask_control_plane(host, "cat", ADMIN))
    except ValueError as error:
        raise Stopped(access.ACCESS_UNUSABLE(problem=str(error))) from error


@host_operation
def forget_access(path: str | None) -> Commands:
    """
    Remove the kubeconfig on this machine if it leads to this control plane's cluster alone.

    + path: of the file; None removes no file
    """
    if path is None:
        host.noop("no kubeconfig is removed with this host")
        return
    yield FunctionCommand(_forget, (path,), {})


def _forget(state: State, host: Host, path: str) -> bool:
    """A worker, and a control plane that was reset before, have no access to compare with: the
    file stays."""
    file = expand_user_path(path)
    if not file.is_file():
        return True
    text = ask_control_plane(host, "sh", "-c", f"cat {ADMIN} 2>/dev/null || echo none")
    try:
        ours = text.strip() != "none" and may_replace(
            file.read_text("utf-8"), administrator_kubeconfig(text)
        )
    except ValueError:
        ours = False
    if ours:
        file.unlink()
    return True


@host_operation
def reset_member(needed: bool, network: str) -> Commands:
    """
    Take the host out of its cluster, with all that kubeadm's reset leaves.

    + needed: gpufleet made it a node, or began to
    + network: flannel, or none
    """
    if not needed:
        host.noop("the host is no node of gpufleet's")
        return
    yield reset_command(network)


def reset_command(network: str, member: str = "") -> StringCommand:
    """The command that resets a host. `member`: the message if the host leaves a cluster and its
    etcd member cannot be removed."""
    failed = found.KUBEADM_FAILED(verb="reset")
    messages = (explain_finding(host.name, each) for each in (failed, cluster.OTHER_CLUSTER()))
    gone = [NETWORKED, KUBERNETES_READY_PATH, *([] if member else [LEAVING]), UPLOADS]
    return script_command(
        "kubernetes/reset", *messages, member, KUBERNETES_BEGUN_PATH, JOINED, network, *gone
    )


def _kubeadm(verb: str, text: str, plan: KubernetesPlan, *done: str) -> Commands:
    """The commands of kubeadm with the configuration `text`. `done`: files that exist then."""
    path = f"{INCOMING}/{run_stamp()}.yaml"
    yield quote_command("install", "-d", "-m", "700", HOME, INCOMING)
    yield upload_command(text.encode(), path)  # for root alone: it may contain a token
    message = explain_finding(host.name, found.KUBEADM_FAILED(verb=verb))
    ignored = ",".join(plan.ignored)
    yield script_command(
        "kubernetes/kubeadm", message, KUBERNETES_BEGUN_PATH, JOINED, verb, path, ignored, *done
    )
