"""What a host needs of the other hosts of its cluster, and of the inventory. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from gpufleet.core.findings import Finding
from gpufleet.core.load_settings import load_role
from gpufleet.kubernetes import findings as found
from gpufleet.kubernetes.record import KubernetesEntry
from gpufleet.kubernetes.settings import KubernetesSettings
from gpufleet.role.protocol import RoleContext

Part = Literal["control-plane", "worker"]
# a cluster has one of each, read when it is created
COMMON = (
    "enabled", "version", "network", "pod_subnet", "service_subnet", "kubelet", "kube_proxy",
    "etcd_tag",
)  # fmt: skip


def roster(
    settings: KubernetesSettings, context: RoleContext, part: Part, *, joined: bool
) -> Iterator[Finding]:
    """Findings before anything is changed."""
    place = context.place
    if not place.control_planes:
        yield found.NO_CONTROL_PLANE()
        return
    if len(place.control_planes) > 1:
        yield found.SEVERAL_CONTROL_PLANES(names=", ".join(place.control_planes))
        return
    first = place.control_planes[0]
    before = context.facts.provenance.entry(KubernetesEntry).part
    if joined and before and before != part:
        yield found.PART_CHANGED(before=before, wanted=part)
    if part == "worker":
        yield from _differences(settings, context, first)
    if part == "worker" and not joined and not place.plane_runs:
        yield found.CONTROL_PLANE_MISSING(control_plane=first)


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
