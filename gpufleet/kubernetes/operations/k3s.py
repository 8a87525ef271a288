"""k3s is installed on hosts and started; hosts join its server, and leave with all that it has."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pyinfra import host, state
from pyinfra.api import FunctionCommand, Host, State, StringCommand

from gpufleet.core.limits import K3S_FILE
from gpufleet.core.paths import expanded
from gpufleet.facts.files import HOME, INCOMING
from gpufleet.host.files import stamp
from gpufleet.host.operation import Commands, operation
from gpufleet.host.shell import command, explain, script, stop, upload
from gpufleet.kubernetes.access import authorities, leads_elsewhere
from gpufleet.kubernetes.findings import cluster
from gpufleet.kubernetes.findings import joining as joins
from gpufleet.kubernetes.findings import k3s as found
from gpufleet.kubernetes.images import FOLDER as IMAGES
from gpufleet.kubernetes.k3s.config import JOIN, TOKEN, join_config
from gpufleet.kubernetes.k3s.files import BINARY, ReleaseFile, sha256_of
from gpufleet.kubernetes.k3s.plan import STATE, K3sPlan
from gpufleet.kubernetes.notes import BEGUN, JOINED, READY, RESTARTING
from gpufleet.kubernetes.operations.images import send_file
from gpufleet.kubernetes.operations.joining import READY_SECONDS, ahead
from gpufleet.kubernetes.operations.tokens import TOKEN_MINUTES, token_of
from gpufleet.kubernetes.removal import KubernetesRemoval, Turn

START_SECONDS = 600  # it unpacks itself and imports archives of images


@operation
def begin(plan: K3sPlan) -> Commands:
    """
    Note that the host is to become a node, or its k3s to restart; reset what an earlier run left.

    A node without a record, of a run that was killed, stays at its version.

    + plan: of the host
    """
    if plan.joined and not plan.restarts:
        host.noop("the host is a node")
        return
    if plan.joined:
        if plan.missing:
            other = found.UPGRADE_REFUSED(installed="of another version", wanted=plan.version)
            yield script("kubernetes/k3s_same", explain(host.name, other), plan.version)
        yield command("touch", RESTARTING)
        return
    if plan.reset:
        yield reset_command(plan.network, leaves=False)
    yield command("install", "-d", "-m", "700", HOME, INCOMING, IMAGES)
    yield command("mkdir", "-p", STATE)  # says that k3s is what is begun
    yield command("touch", BEGUN)


@operation
def install(files: Sequence[ReleaseFile]) -> Commands:
    """
    Install files of k3s' release: from this machine, or the host fetches them; by their sha256.

    + files: those that the host's record does not have
    """
    if not files:
        host.noop("the host has the files of the release")
        return
    yield command("install", "-d", "-m", "700", HOME, IMAGES)
    for each in files:
        part = f"{IMAGES}/{stamp()}"
        if each.path:
            yield from send_file(each.path, part)
            if sha256_of(each.path) != each.sha256:
                yield stop(
                    host.name,
                    found.WRONG_DIGEST(
                        path=each.path, found=sha256_of(each.path), wanted=each.sha256
                    ),
                )
        message = explain(host.name, found.NOT_INSTALLED(name=each.name, target=each.target))
        limits = (str(K3S_FILE.bytes), str(K3S_FILE.seconds))
        source = (each.url, *limits) if each.url else ()
        yield script(
            "kubernetes/k3s_put", message, each.sha256, each.target, each.mode, part, *source
        )
    yield command("rm", "-rf", IMAGES)  # an upload of a killed run too


@operation
def restart(plan: K3sPlan) -> Commands:
    """
    Restart k3s on a node whose files have changed, now or in a run that broke off; its pods go on.

    + plan: of the host
    """
    if not plan.restarts:
        host.noop("k3s has the files that it runs with, or is not started yet")
        return
    message = explain(host.name, found.NOT_RESTARTED(unit=plan.unit))
    yield script("kubernetes/k3s_restart", message, plan.unit, str(READY_SECONDS), RESTARTING)


@operation
def start(plan: K3sPlan) -> Commands:
    """
    Start the server where the cluster begins.

    + plan: of the host
    """
    if not plan.initiates:
        host.noop("the server runs" if plan.joined else "the cluster does not begin here")
        return
    yield _start(plan)


@operation
def join(plan: K3sPlan) -> Commands:
    """
    Join the server's cluster as an agent, with a token that lives for minutes.

    + plan: of the host
    """
    if plan.part != "worker" or plan.joined:
        host.noop("the host is a node")
        return
    if not state.is_executing:
        yield command("true")  # the token is made when the host joins
        return
    made_by = script("kubernetes/k3s_token", str(TOKEN_MINUTES), plan.endpoint)
    token = token_of(plan.sources, made_by)
    if problem := ahead(plan.version, token):
        yield problem
        return
    yield command("install", "-d", "-m", "700", str(Path(JOIN).parent))
    yield upload(join_config(token.endpoint).encode(), JOIN)
    yield upload(f"{token.token}\n".encode(), TOKEN)  # for root alone
    yield _start(plan)


@operation
def wait_ready(plan: K3sPlan) -> Commands:
    """
    Wait until the host's node is Ready.

    + plan: of the host
    """
    if not plan.waits:
        host.noop("the node was Ready, or its network is not gpufleet's")
        return
    message = explain(host.name, joins.NOT_READY(seconds=READY_SECONDS))
    yield script("kubernetes/k3s_ready", message, str(READY_SECONDS), READY)


def access_command(plan: K3sPlan) -> StringCommand:
    """The command that prints the administrator's kubeconfig, with an address that others reach."""
    return script("kubernetes/k3s_access", plan.endpoint)


@operation
def leave(plan: KubernetesRemoval, *turns: Turn) -> Commands:
    """
    Remove k3s with its pods and data.

    + plan: of the removal
    + turns: of the hosts that leave in this step
    """
    if not plan.reset or plan.turn not in turns:
        host.noop("it is not this host's turn")
        return
    yield reset_command(plan.network, leaves=True)


@operation
def forget_access(plan: KubernetesRemoval) -> Commands:
    """
    Remove the kubeconfig on this machine if it leads to this cluster alone.

    + plan: of the removal
    """
    if plan.kubeconfig is None or not plan.reset:
        host.noop("no kubeconfig is removed with this host")
        return
    yield FunctionCommand(_forget, (plan.kubeconfig, frozenset(plan.authorities)), {})


def _forget(state: State, host: Host, path: str, known: frozenset[str]) -> bool:
    """By the authority that it trusts: k3s' own file has an address of the host itself alone."""
    file = expanded(path)
    if not file.is_file():
        return True
    text = file.read_text("utf-8", "replace")
    if authorities(text) and known and not leads_elsewhere(text, known):
        file.unlink()
    return True


def reset_command(network: str, *, leaves: bool) -> StringCommand:
    """Remove k3s and what it leaves. `leaves`: with the password of its node in the cluster, which
    a host that joins again needs."""
    messages = (explain(host.name, each()) for each in (found.REMAINS, cluster.OTHER_CLUSTER))
    how = "leaves" if leaves else ""
    return script(
        "kubernetes/k3s_reset", *messages, BEGUN, JOINED, network, how, READY, RESTARTING, IMAGES
    )


def _start(plan: K3sPlan) -> StringCommand:
    message = found.NOT_STARTED(unit=plan.unit, seconds=START_SECONDS)
    other = found.OTHER_PROGRAM(path=BINARY, version=plan.version)
    messages = (explain(host.name, each) for each in (message, other))
    return script(
        "kubernetes/k3s_start", *messages, BEGUN, JOINED, plan.unit, plan.version,
        str(START_SECONDS),
    )  # fmt: skip
