"""The part of a host in its cluster: as it is, and as the inventory wants it. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from gpufleet.core.inventory import CONTROL_PLANE
from gpufleet.facts.model import NodeFacts
from gpufleet.kubernetes.models import Kubernetes
from gpufleet.kubernetes.notes import JOINED, KUBELET, KUBERNETES_BEGUN_PATH, LEAVING
from gpufleet.kubernetes.roster import Part
from gpufleet.kubernetes.settings import KubernetesSettings
from gpufleet.role.protocol import RoleContext


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
        return (
            self.joined and bool(self.before) and not version_fits(self.before or "", self.version)
        )


def member_of(settings: KubernetesSettings, known: Kubernetes, context: RoleContext) -> HostMember:
    """Read the part from the host's facts and its place in the inventory."""
    facts, paths = context.facts, context.facts.cluster_host.paths
    part: Part = "control-plane" if CONTROL_PLANE in context.place.groups else "worker"
    joined = {JOINED, KUBELET} <= paths
    before = _installed(facts)
    stays = before if JOINED in paths and settings.version is None else None
    leads = part == "control-plane" and context.place.position == 0
    return HostMember(
        part=part,
        before=before,
        version=settings.version or stays or known.newest,
        keeps=bool(stays),
        joined=joined,
        reset=KUBERNETES_BEGUN_PATH in paths or not (joined or paths.isdisjoint((JOINED, LEAVING))),
        leads=leads,
        initiates=leads and not joined and not context.place.having,
    )


def _installed(facts: NodeFacts) -> str | None:
    return facts.packages["kubelet"].upstream if is_package_installed(facts, "kubelet") else None


def is_package_installed(facts: NodeFacts, name: str) -> bool:
    return name in facts.packages and facts.packages[name].state == "installed"


def version_fits(installed: str, version: str) -> bool:
    """True if an installed version is the requested one, or one of the requested minor."""
    return installed == version or installed.startswith(f"{version}.")
