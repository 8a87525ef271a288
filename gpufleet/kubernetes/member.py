"""The part of a host in its cluster, and its requirements on the other hosts there. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from gpufleet.core.findings import Finding
from gpufleet.core.inventory import CONTROL_PLANE
from gpufleet.core.load_settings import load_role
from gpufleet.facts.model import NodeFacts
from gpufleet.kubernetes.findings import cluster as found
from gpufleet.kubernetes.models import Kubernetes
from gpufleet.kubernetes.notes import JOINED, KUBELET, KUBERNETES_BEGUN_PATH, LEAVING
from gpufleet.kubernetes.record import KubernetesEntry
from gpufleet.kubernetes.settings import KubernetesSettings
from gpufleet.role.protocol import RoleContext

Part = Literal["control-plane", "worker"]
# a cluster has one of each, read when it is created
COMMON = (
    "enabled", "version", "endpoint", "network", "pod_subnet", "service_subnet",
    "kubelet", "kube_proxy", "etcd_tag", "metrics_address",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class HostMember:
    """The part of a host in its cluster, and its version of Kubernetes."""

    part: Part
    before: str | None  # installed version
    version: str  # requested, or that of a node that keeps its own
    keeps: bool
    joined: bool
    reset: bool
    leads: bool
    initiates: bool

    @property
    def minor(self) -> str:
        return ".".join(self.version.split(".")[:2])

    @property
    def is_refused(self) -> bool:
        """True if its version would change: a node is not upgraded."""
        fits = version_fits(self.before or "", self.version)
        return self.joined and bool(self.before) and not fits


def member_of(settings: KubernetesSettings, known: Kubernetes, context: RoleContext) -> HostMember:
    """Read the part from the host's facts and its place in the inventory."""
    facts, paths = context.facts, context.facts.cluster_host.paths
    part: Part = "control-plane" if CONTROL_PLANE in context.place.groups else "worker"
    joined = {JOINED, KUBELET} <= paths
    installed = is_package_installed(facts, "kubelet")
    before = facts.packages["kubelet"].upstream if installed else None
    stays = before if JOINED in paths and settings.version is None else None
    leads = part == "control-plane" and context.place.position == 0
    return HostMember(
        part=part,
        before=before,
        version=settings.version or stays or known.default,
        keeps=bool(stays),
        joined=joined,
        reset=KUBERNETES_BEGUN_PATH in paths or not (joined or paths.isdisjoint((JOINED, LEAVING))),
        leads=leads,
        initiates=leads and not joined and not context.place.having,
    )


def is_package_installed(facts: NodeFacts, name: str) -> bool:
    return name in facts.packages and facts.packages[name].state == "installed"


def version_fits(installed: str, version: str) -> bool:
    """True if an installed version is the requested one, or one of the requested minor."""
    return installed == version or installed.startswith(f"{version}.")


def check_roster(
    settings: KubernetesSettings, context: RoleContext, member: HostMember
) -> Iterator[Finding]:
    """Findings about the other hosts and the inventory, before anything is changed."""
    place = context.place
    if not place.control_planes:
        yield found.NO_CONTROL_PLANE()
        return
    count = len(place.control_planes)
    before = context.facts.provenance.entry(KubernetesEntry).part
    if member.joined and before and before != member.part:
        yield found.PART_CHANGED(before=before, wanted=member.part)
    yield from _endpoint(settings, context, joined=member.joined)
    if not member.leads:
        yield from _differences(settings, context)
    elif count % 2 == 0:
        # etcd needs a majority: https://etcd.io/docs/v3.6/faq/#why-an-odd-number-of-cluster-members
        lost = count // 2 - 1 or "none"
        yield found.EVEN_CONTROL_PLANES(count=count, lost=lost, fewer=count - 1, more=count + 1)
    if not (member.joined or member.leads or join_sources(context, member.part)):
        yield found.NO_CONTROL_PLANE_READY(control_plane=place.control_planes[0])


def join_sources(context: RoleContext, part: Part) -> tuple[str, ...]:
    """Control planes of the run that a host can join by: those that are nodes first."""
    place = context.place
    own = place.control_planes[place.position] if part == "control-plane" else ""
    others = [name for name in place.control_planes if name not in (own, *place.absent)]
    return tuple(dict.fromkeys((*place.having, *others)))


def _endpoint(
    settings: KubernetesSettings, context: RoleContext, *, joined: bool
) -> Iterator[Finding]:
    """Findings about the address of the API server."""
    place, host = context.place, context.facts.cluster_host
    several = len(place.control_planes) > 1
    server = host.server.removeprefix("https://")
    wanted = settings.endpoint
    if joined and server and wanted != server:
        if several and server == host.advertised:
            yield found.NO_ENDPOINT(found=server)
            return
        if wanted:
            yield found.ENDPOINT_DIFFERS(found=server, wanted=wanted)
            return
    if several and not wanted:
        yield found.SEVERAL_CONTROL_PLANES(names=", ".join(place.control_planes))
    elif wanted and place.answering and not place.having:
        yield found.ENDPOINT_ANSWERS(version=place.answering, endpoint=wanted)


def _differences(settings: KubernetesSettings, context: RoleContext) -> Iterator[Finding]:
    """Settings of the cluster that are not those of the control plane."""
    place = context.place
    other = load_role(KubernetesSettings, place.plane, [])
    if other is None:  # its own findings say so
        return
    for name in COMMON:
        if getattr(settings, name) != getattr(other, name):
            key = f"{settings.prefix}{name}"
            yield found.CLUSTER_DIFFERS(key=key, control_plane=place.control_planes[0])
