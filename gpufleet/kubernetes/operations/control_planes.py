"""Control planes join their cluster, and leave it, one after the other: etcd counts its members."""

from __future__ import annotations

from collections.abc import Callable

from pyinfra import host, state

from gpufleet.host.operation import Commands, one_by_one
from gpufleet.host.shell import explain_finding, quote_command, script_command
from gpufleet.kubernetes.findings import joining as found
from gpufleet.kubernetes.notes import LEAVING, NETWORKED
from gpufleet.kubernetes.operations import joining
from gpufleet.kubernetes.operations.tokens import token_with_key, withdraw_certificates
from gpufleet.kubernetes.plan import KubernetesPlan
from gpufleet.kubernetes.removal import KubernetesRemoval, Turn
from gpufleet.kubernetes.settings import KubernetesSettings
from gpufleet.run.reporting import RunReport

LEAVE_SECONDS = 60  # a load balancer takes some to see that a control plane is gone


@one_by_one
def join_control_plane(
    plan: KubernetesPlan, settings: KubernetesSettings, version: Callable[[], str | None]
) -> Commands:
    """
    Join the cluster as a further control plane. The cluster holds its certificates until then.

    + plan: of the host
    + settings: of the role
    + version: installed version, known when the step runs
    """
    if plan.part != "control-plane" or plan.initiates or plan.joined:
        host.noop("the host is no control plane that joins")
        return
    if not state.is_executing:
        yield quote_command("true")  # the token is created when the step runs
        return
    if plan.reset:
        yield joining.reset_command(plan.network)
    installed = version() or plan.version
    source, token = token_with_key(plan.sources, installed, plan.api)
    try:
        problem = joining.stop_if_newer(installed, token)
        if problem:
            yield problem
            return
        yield from joining.kubeadm_join(plan, settings, token, NETWORKED)
    finally:
        if stays := withdraw_certificates(source):
            RunReport.of(state).host(host.name).findings.append(stays)


@one_by_one
def leave_control_plane(plan: KubernetesRemoval, turn: Turn) -> Commands:
    """
    Take a control plane out of its cluster and out of etcd.

    + plan: of the removal
    + turn: of the control planes that leave in this step
    """
    if not plan.reset or plan.turn != turn:
        host.noop("it is not this host's turn")
        return
    if plan.whole:
        yield joining.reset_command(plan.network)
        return
    message = explain_finding(host.name, found.QUORUM_AT_RISK())
    yield script_command("kubernetes/leave", message, LEAVING)
    member = explain_finding(host.name, found.MEMBER_STAYS())
    yield joining.reset_command(plan.network, member)
    message = explain_finding(host.name, found.NODE_STAYS(path=LEAVING))
    yield script_command("kubernetes/delete_node", message, str(LEAVE_SECONDS), LEAVING)
