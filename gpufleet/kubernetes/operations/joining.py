"""A control plane is started, hosts join it."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from pyinfra import host, state
from pyinfra.api import FunctionCommand, Host, State, StringCommand

from gpufleet.core.private_file import write_private
from gpufleet.core.redact import redact
from gpufleet.core.stopped import Stopped
from gpufleet.core.versions import version_tuple
from gpufleet.facts.files import HOME
from gpufleet.host.asking import answer, arguments, framed, is_connected
from gpufleet.host.boundary import step
from gpufleet.host.files import INCOMING, stamp
from gpufleet.host.operation import Commands, operation
from gpufleet.host.shell import command, explain, script, stop, upload
from gpufleet.host.sudo import run
from gpufleet.host.trouble import SHOWN, refusal
from gpufleet.kubernetes import findings as found
from gpufleet.kubernetes.access import administrator, may_replace
from gpufleet.kubernetes.kubeadm import (
    JoinToken,
    init_configuration,
    join_configuration,
)
from gpufleet.kubernetes.plan import (
    BEGUN,
    JOINED,
    MODULES,
    NETWORKED,
    READY,
    SYSCTLS,
    KubernetesPlan,
)
from gpufleet.kubernetes.settings import KubernetesSettings

ADMIN = "/etc/kubernetes/admin.conf"
TOKEN_MINUTES = 15
NAMES_TOKEN = re.compile(r"failed to create or update bootstrap token with name \S+: ")
TOKEN_PARTS = {"endpoint", "token", "hash", "version"}
READY_SECONDS = 180
NETWORK = "kube-flannel"  # namespace of templates/kubernetes/flannel.yaml.j2


@operation
def prepare(plan: KubernetesPlan) -> Commands:
    """
    Load the kernel's modules and settings.

    + plan: of the host
    """
    if plan.joined and not plan.files:
        host.noop("the kernel is prepared")
        return
    message = explain(host.name, found.PREPARE_FAILED())
    yield script("kubernetes/prepare", message, MODULES, SYSCTLS)


@operation
def start(
    plan: KubernetesPlan, settings: KubernetesSettings, version: Callable[[], str | None]
) -> Commands:
    """
    Start the control plane, unless the host is a worker.

    + plan: of the host
    + settings: of the role
    + version: installed version, known when the step runs
    """
    if plan.part != "control-plane" or plan.joined:
        host.noop("the control plane runs" if plan.joined else "the host is a worker")
        return
    text = init_configuration(settings, version() or plan.version)
    yield from _kubeadm("init", text, plan, explain(host.name, found.INIT_FAILED()))


@operation
def join(
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
    there = state.inventory.get_host(plan.control_plane)
    if there in state.failed_hosts or not there.connected:
        yield stop(host.name, found.CONTROL_PLANE_FAILED(control_plane=there.name))
        return
    token = _token(plan.control_plane)
    installed = version() or plan.version
    if version_tuple(installed)[:2] > version_tuple(token.version)[:2]:
        problem = found.VERSION_AHEAD(installed=installed, cluster=token.version)
        yield stop(host.name, problem)
        return
    message = explain(host.name, found.JOIN_FAILED())
    yield from _kubeadm("join", join_configuration(settings, token), plan, message)


@operation
def install_network(plan: KubernetesPlan, manifest: str) -> Commands:
    """
    Install the network between pods, from the control plane.

    + plan: of the host
    + manifest: Kubernetes objects
    """
    if not plan.networks:
        host.noop("the network is installed, or not gpufleet's to install here")
        return
    path = f"{INCOMING}/{stamp()}.yaml"
    yield upload(manifest.encode(), path)
    message = explain(host.name, found.NETWORK_FAILED(network="flannel"))
    yield script("kubernetes/apply", message, path, NETWORKED)


@operation
def wait_ready(plan: KubernetesPlan) -> Commands:
    """
    Wait until the host's node is Ready and the network of its pods runs.

    + plan: of the host
    """
    if not plan.waits:
        host.noop("the node was Ready, or its network is not gpufleet's")
        return
    message = explain(host.name, found.NOT_READY(seconds=READY_SECONDS))
    yield script("kubernetes/ready", message, str(READY_SECONDS), NETWORK, READY)


@operation
def fetch_access(plan: KubernetesPlan, path: str | None) -> Commands:
    """
    Write the administrator's kubeconfig on this machine, readable by its owner alone.

    + plan: of the host
    + path: of the file; None: it is not wanted
    """
    if path is None or plan.part != "control-plane":
        host.noop("no kubeconfig is wanted of this host")
        return
    yield FunctionCommand(_fetch, (path,), {})


def _fetch(state: State, host: Host, path: str) -> bool:
    """Write it if it differs. Never printed, not even at -vvv."""
    text = _access(host)
    file = Path(path).expanduser()
    try:
        there = file.read_text("utf-8", "replace") if file.is_file() else ""
        if not may_replace(there, text):
            raise Stopped(found.KUBECONFIG_OTHERS(path=path))
        write_private(file, text)
    except OSError as error:
        problem = error.strerror or str(error)
        raise Stopped(found.KUBECONFIG_NOT_WRITTEN(path=path, problem=problem)) from error
    return True


def _access(host: Host) -> str:
    """The administrator's kubeconfig of a control plane: certificates and a server, nothing that
    runs programs or reads other files here. Raises Stopped."""
    try:
        return administrator(_ask(host, framed(command("cat", ADMIN))))
    except ValueError as error:
        raise Stopped(found.ACCESS_UNUSABLE(problem=str(error))) from error


@operation
def forget_access(path: str | None) -> Commands:
    """
    Remove the kubeconfig on this machine if it leads to this control plane's cluster alone.

    + path: of the file; None: the host has none to remove
    """
    if path is None:
        host.noop("no kubeconfig is removed with this host")
        return
    yield FunctionCommand(_forget, (path,), {})


def _forget(state: State, host: Host, path: str) -> bool:
    """A worker, and a control plane that was reset before, have no access to compare with: the
    file stays."""
    file = Path(path).expanduser()
    if not file.is_file():
        return True
    text = _ask(host, framed(command("sh", "-c", f"cat {ADMIN} 2>/dev/null || echo none")))
    try:
        ours = text.strip() != "none" and may_replace(file.read_text("utf-8"), administrator(text))
    except ValueError:
        ours = False
    if ours:
        file.unlink()
    return True


@operation
def reset(needed: bool, network: str) -> Commands:
    """
    Take the host out of its cluster, with all that kubeadm's reset leaves.

    + needed: gpufleet made it a node, or began to
    + network: flannel, or none
    """
    if not needed:
        host.noop("the host is no node of gpufleet's")
        return
    yield _reset(network)


def _reset(network: str) -> StringCommand:
    messages = (explain(host.name, each()) for each in (found.RESET_FAILED, found.OTHER_CLUSTER))
    return script("kubernetes/reset", *messages, BEGUN, JOINED, network, NETWORKED, READY)


def _kubeadm(verb: str, text: str, plan: KubernetesPlan, message: str) -> Commands:
    if plan.reset:
        yield _reset(plan.network)
    path = f"{INCOMING}/{stamp()}.yaml"
    yield command("install", "-d", "-m", "700", HOME, INCOMING)
    yield upload(text.encode(), path)  # for root alone: it may contain a token
    yield script("kubernetes/kubeadm", message, BEGUN, JOINED, verb, path, ",".join(plan.ignored))


def _token(control_plane: str) -> JoinToken:
    """A token made on the control plane for this run. Never printed, not even at -vvv."""
    there = state.inventory.get_host(control_plane)
    asked = framed(script("kubernetes/token", str(TOKEN_MINUTES)))
    ok, output = run(there, asked, **arguments(there))
    lines = answer(output.stdout_lines) if ok else None
    if not lines and not is_connected(there):
        raise Stopped(found.CONTROL_PLANE_FAILED(control_plane=control_plane))
    words = dict(line.partition(" ")[::2] for line in lines or ())
    if not words.keys() >= TOKEN_PARTS:
        text = " / ".join(line.strip() for line in output.stderr_lines if line.strip())
        said = redact(NAMES_TOKEN.sub("", text))
        problem = said[:SHOWN].rstrip(".") or "it printed nothing"
        raise Stopped(found.NO_TOKEN(control_plane=control_plane, answer=problem))
    return JoinToken(words["endpoint"], words["token"], words["hash"], words["version"])


def _ask(there: Host, asked: StringCommand) -> str:
    """What a host answers, without printing it. Raises Stopped where it does not."""
    ok, output = run(there, asked, **arguments(there))
    lines = answer(output.stdout_lines) if ok else None
    if not lines:
        raise Stopped(refusal(there, output.stderr_lines, step(state, there)))
    return "\n".join(lines) + "\n"
