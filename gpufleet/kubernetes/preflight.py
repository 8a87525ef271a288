"""Checks of a host before Kubernetes is installed. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from gpufleet.core.findings import Finding, Severity
from gpufleet.core.versions import version_tuple
from gpufleet.facts.model import NodeFacts
from gpufleet.facts.sections.services import RUNS, runs_kubelet
from gpufleet.kubernetes.findings import choice, hosts
from gpufleet.kubernetes.member import HostMember, is_package_installed
from gpufleet.kubernetes.models import Kubernetes
from gpufleet.kubernetes.notes import INSTALLING
from gpufleet.kubernetes.settings import KubernetesSettings
from gpufleet.role.protocol import RoleContext

NODE_PORTS = {"control-plane": (6443, 2379, 2380, 10250, 10257, 10259), "worker": (10250,)}
TOKEN_CLOCK_TOLERANCE = 60  # seconds; a token lives minutes
# A kubelet makes the name the value of the label kubernetes.io/hostname. Source:
# https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#syntax-and-character-set
LONGEST_NAME = 63
STATE = ("/var/lib/etcd/", "/var/lib/kubelet/", "/etc/rancher/", "/var/lib/rancher/")
KUBELET_UNIT = "kubelet.service"
CONFIGURED = ("/etc/kubernetes/", "/var/lib/kubelet/config")  # files of a kubelet of kubeadm
LINKS = "/sys/class/net/"  # flannel takes no bridge that has another cluster's address
# containerd reads one file of the folder (max_conf_num), the first by name. Source:
# https://github.com/containerd/containerd/blob/main/docs/cri/config.md
CNI, FLANNEL = "/etc/cni/net.d", "10-flannel.conflist"
_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


def cluster_obstacles(
    settings: KubernetesSettings, facts: NodeFacts, known: Kubernetes, member: HostMember
) -> Iterator[Finding]:
    """Findings before anything is changed."""
    host, minor = facts.cluster_host, member.minor
    if host.cgroups == 1 and known.requires("cgroups-v2", minor):
        accepted = settings.kubelet.get("failCgroupV1") is False
        kind = choice.CGROUPS_V1_ACCEPTED if accepted else choice.CGROUPS_V1
        yield kind(version=minor)
    yield from _fields(settings, known, minor)
    limit, kernel = known.kernel(minor), facts.kernel.release
    if limit and version_tuple(kernel) < version_tuple(limit.minimum):
        yield choice.KERNEL_TOO_OLD(
            version=minor, found=kernel, minimum=limit.minimum, since=limit.since, below=limit.below
        )
    yield from _runtime(facts, known, minor)
    if host.swap and settings.kubelet.get("failSwapOn") is not False:
        runs = member.joined and _kubelet_state(facts) == "active"  # its settings may accept swap
        severity = Severity.WARNING if runs else Severity.BLOCKER
        yield hosts.SWAP_ON(severity, devices=", ".join(host.swap))
    if not _NAME.fullmatch(host.name.lower()) or len(host.name) > LONGEST_NAME:
        yield hosts.NO_DNS_NAME(name=host.name)
    if not member.joined:
        yield from _firewall(settings, facts, known, member)
    ours = member.joined or member.reset or not host.paths.isdisjoint(INSTALLING)
    if not ours:  # gpufleet neither made it a node nor began to
        yield from check_other_clusters(facts, NODE_PORTS[member.part], settings.network)
    if member.part == "control-plane":
        yield from size_of(facts, known)


def _firewall(
    settings: KubernetesSettings, facts: NodeFacts, known: Kubernetes, member: HostMember
) -> Iterator[Finding]:
    """A warning before a host with a firewall joins: the facts do not have its rules."""
    firewall = facts.services.get("firewalld.service")
    if firewall is None or firewall.active not in RUNS:
        return
    flannel = f"UDP {known.flannel.port}" if settings.network == "flannel" else "your network's"
    ports = f"TCP {', '.join(map(str, NODE_PORTS[member.part]))} and {flannel}"
    yield hosts.FIREWALL(ports=ports, pods=settings.pod_subnet)


def check_identity(context: RoleContext) -> Iterator[Finding]:
    """Findings about a host's identity, which must be unique, and about its clock."""
    for twin in context.place.twins:
        yield hosts.DUPLICATE_MACHINE(others=twin.name, what=twin.what, value=twin.value)
    if abs(context.skew) > TOKEN_CLOCK_TOLERANCE:
        yield hosts.CLOCK_APART(seconds=abs(context.skew))


def _fields(settings: KubernetesSettings, known: Kubernetes, minor: str) -> Iterator[Finding]:
    """Settings of components that this minor does not have."""
    given = {"kubelet": settings.kubelet, "kube_proxy": settings.kube_proxy}
    for setting, fields in given.items():
        for each in known.too_new(setting, fields, minor):
            severity, effect = Severity.BLOCKER, f"its component of {minor} does not start"
            if each.unknown == "ignores":
                severity, effect = Severity.WARNING, f"{minor} ignores it"
            name = f"{each.field} = {each.value}" if each.value else each.field
            key = f"{settings.prefix}{setting}"
            yield choice.FIELD_TOO_NEW(
                severity, key=key, field=name, since=each.since, effect=effect
            )


def _runtime(facts: NodeFacts, known: Kubernetes, minor: str) -> Iterator[Finding]:
    runtime, minimum = facts.runtimes.get("containerd"), known.containerd(minor)
    if runtime is None:
        none = "none, and gpufleet installs none here"
        yield choice.CONTAINERD_MISSING(version=minor, minimum=minimum, found=none)
        return
    if not runtime.running:
        yield choice.CONTAINERD_STOPPED()
    if version_tuple(runtime.version) < version_tuple(minimum):
        yield choice.CONTAINERD_MISSING(version=minor, minimum=minimum, found=runtime.version)


def check_other_clusters(
    facts: NodeFacts, ports: Collection[int], network: str
) -> Iterator[Finding]:
    """Findings about files of another cluster and about ports in use."""
    if facts.kubelet and not _waits_for_kubeadm(facts):
        yield hosts.FOREIGN_NODE()
        return
    paths = facts.cluster_host.paths
    left = sorted(path for path in paths if path.startswith("/etc/kubernetes/"))
    left += sorted(path for path in paths if path.startswith(STATE))
    if network == "flannel":
        left += sorted(path for path in paths if path.startswith(LINKS))
        left += sorted(path for path in paths if _precedes(path))
    if left:
        yield hosts.LEFTOVERS(paths=", ".join(left))
    for listener in facts.listeners:
        if listener.port in ports:
            daemon = listener.daemon
            who = f"{daemon.command} ({daemon.pid})" if daemon else "an unknown process"
            yield hosts.CLUSTER_PORT_TAKEN(port=listener.port, who=who)


def _waits_for_kubeadm(facts: NodeFacts) -> bool:
    """True if the kubelet is the package's, which systemd starts again until kubeadm configures it.

    Source: https://kubernetes.io/docs/setup/production-environment/tools/kubeadm/install-kubeadm/
    """
    others = {name: each for name, each in facts.services.items() if name != KUBELET_UNIT}
    configured = any(path.startswith(CONFIGURED) for path in facts.cluster_host.paths)
    starts = _kubelet_state(facts) == "activating" and is_package_installed(facts, "kubelet")
    return starts and not (configured or runs_kubelet(others))


def _kubelet_state(facts: NodeFacts) -> str:
    unit = facts.services.get(KUBELET_UNIT)
    return unit.active if unit else ""


def _precedes(path: str) -> bool:
    """True if containerd takes a network's file instead of flannel's: the first one by name."""
    folder, _, name = path.rpartition("/")
    return folder == CNI and name.endswith((".conf", ".conflist", ".json")) and name < FLANNEL


def size_of(facts: NodeFacts, known: Kubernetes) -> Iterator[Finding]:
    """A host too small for a control plane."""
    host, least = facts.cluster_host, known.hosts
    if 0 < host.processors < least.processors:
        processors = f"{least.processors} processors"
        yield hosts.TOO_SMALL(found=f"{host.processors} processor", required=processors)
    if 0 < host.memory < least.memory:
        required = f"{least.memory // 1024} MiB"
        yield hosts.TOO_SMALL(found=f"{host.memory // 1024} MiB of memory", required=required)
