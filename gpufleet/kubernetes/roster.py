"""Requirements of a host on the other hosts of its cluster and on the inventory. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from gpufleet.core.findings import Finding
from gpufleet.core.load_settings import load_role
from gpufleet.kubernetes.findings import cluster as found
from gpufleet.kubernetes.record import KubernetesEntry
from gpufleet.kubernetes.settings import KubernetesSettings
from gpufleet.role.protocol import RoleContext

Part = Literal["control-plane", "worker"]
# a cluster has one of each, read when it is created
COMMON = (
    "enabled", "version", "endpoint", "network", "pod_subnet", "service_subnet",
    "kubelet", "kube_proxy", "etcd_tag", "metrics_address",
)  # fmt: skip


def check_roster(
    settings: KubernetesSettings, context: RoleContext, part: Part, *, joined: bool
) -> Iterator[Finding]:
    """Findings before anything is changed."""
    place = context.place
    if not place.control_planes:
        yield found.NO_CONTROL_PLANE()
        return
    first = place.control_planes[0]
    leads = part == "control-plane" and place.position == 0
    before = context.facts.provenance.entry(KubernetesEntry).part
    if joined and before and before != part:
        yield found.PART_CHANGED(before=before, wanted=part)
    yield from _endpoint(settings, context, joined=joined)
    if leads:
        yield from _even(len(place.control_planes))
    else:
        yield from _differences(settings, context, first)
    if not (joined or leads or join_sources(context, part)):
        yield found.NO_CONTROL_PLANE_READY(control_plane=first)


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


def _even(count: int) -> Iterator[Finding]:
    """etcd needs a majority. https://etcd.io/docs/v3.6/faq/#why-an-odd-number-of-cluster-members"""
    if count % 2 == 0:
        lost = count // 2 - 1
        yield found.EVEN_CONTROL_PLANES(
            count=count, lost=lost or "none", fewer=count - 1, more=count + 1
        )


def _differences(
    settings: KubernetesSettings, context: RoleContext, first: str
) -> Iterator[Finding]:
    """Settings of the cluster that are not those of the control plane."""
    other = load_role(KubernetesSettings, context.place.plane, [])
    if other is None:  # its own findings say so
        return
    for name in COMMON:
        if getattr(settings, name) != getattr(other, name):
            key = f"{settings.prefix}{name}"
            yield found.CLUSTER_DIFFERS(key=key, control_plane=first)
