"""Kubernetes as a role of a node. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from gpufleet.core.findings import Finding
from gpufleet.core.inventory import CONTROL_PLANE
from gpufleet.facts.model import NodeFacts
from gpufleet.host.file_write import FileWrite
from gpufleet.kubernetes.containerd import CERTS
from gpufleet.kubernetes.identity import elsewhere, newer
from gpufleet.kubernetes.k3s.config import CONTAINERD, FOLDER, UNIT_FILES, read_files
from gpufleet.kubernetes.k3s.config import PORTS as K3S_PORTS
from gpufleet.kubernetes.k3s.plan import K3sPlan, changed, plan_k3s
from gpufleet.kubernetes.made_by import NODE
from gpufleet.kubernetes.models import KubernetesCatalog
from gpufleet.kubernetes.notes import (
    BEGUN,
    JOINED,
    KUBELET,
    MODULES,
    SYSCTLS,
)
from gpufleet.kubernetes.plan import (
    KubernetesPlan,
    host_files,
    plan_kubernetes,
)
from gpufleet.kubernetes.preflight import PORTS
from gpufleet.kubernetes.record import KubernetesEntry
from gpufleet.kubernetes.removal import KubernetesRemoval, plan_kubernetes_removal
from gpufleet.kubernetes.settings import KubernetesSettings
from gpufleet.packages.repository import RepositoryPlan
from gpufleet.role.place import Place, Question
from gpufleet.role.protocol import (
    ASKED_LATER,
    RemovalContext,
    Role,
    RoleContext,
    named,
    repository_name,
)

AnyPlan: TypeAlias = KubernetesPlan | K3sPlan


class KubernetesRole(Role[KubernetesSettings, AnyPlan, KubernetesEntry]):
    """A node of a Kubernetes cluster, by kubeadm or k3s."""

    name = "kubernetes"
    needs_gpu = False
    settings = KubernetesSettings
    entry = KubernetesEntry

    def ports(self, settings: KubernetesSettings) -> tuple[int, ...]:
        ports = K3S_PORTS if settings.distribution == "k3s" else PORTS
        return ports["control-plane"] if settings.enabled else ()

    def paths(self, settings: KubernetesSettings) -> tuple[str, ...]:
        if settings.enabled and settings.distribution == "k3s":
            return read_files()
        return tuple(file.path for file in host_files(settings)) if settings.enabled else ()

    def requires(
        self, settings: KubernetesSettings, catalog: KubernetesCatalog
    ) -> Mapping[str, str]:
        if not settings.enabled:
            return {}
        if settings.distribution == "k3s":
            return {}  # it has its own
        known = catalog.kubernetes
        minor = ".".join((settings.version or known.newest).split(".")[:2])
        return {"containerd": known.containerd(minor)}

    def question(
        self, settings: KubernetesSettings, facts: NodeFacts, place: Place
    ) -> Question | None:
        """Where a cluster begins: whether it is there already."""
        paths = facts.cluster_host.paths
        leads = CONTROL_PLANE in place.groups and place.position == 0
        done = {JOINED} if settings.distribution == "k3s" else {JOINED, KUBELET}
        if not settings.enabled or not leads or done <= paths:
            return None
        own = BEGUN in paths  # what answers then may be what an earlier run began
        several = len(place.control_planes) > 1
        return Question(JOINED if several else "", "" if own else settings.endpoint or "")

    def plan(
        self, settings: KubernetesSettings, context: RoleContext
    ) -> tuple[AnyPlan | None, tuple[Finding, ...]]:
        if not settings.enabled:
            return None, ()
        if another := tuple(changed(settings.distribution, context.facts)):
            return None, another
        if settings.distribution == "k3s":
            return plan_k3s(settings, context.catalog, context)
        return plan_kubernetes(settings, context.catalog, context)

    def beside(
        self,
        plan: AnyPlan | None,
        settings: KubernetesSettings,
        facts: NodeFacts,
        plane: NodeFacts,
    ) -> Iterable[Finding]:
        # with an endpoint, the first may be a new machine that joins the others
        if settings.enabled and (JOINED in plane.cluster_host.paths or not settings.endpoint):
            yield from elsewhere(facts.cluster_host, plane.cluster_host)
        if plan and not plan.joined:
            yield from newer(plan.version, plane)

    def converged(self, plan: AnyPlan, driver: str | None) -> bool:
        return plan.converged

    def steps(self, plan: AnyPlan, context: RoleContext) -> list[str]:
        if isinstance(plan, K3sPlan):
            return named(self.name, plan.steps())
        by = plan.sources[0] if plan.sources else plan.control_plane
        joins = f"join the cluster of {by}"
        if plan.part == "control-plane":
            joins = "start the control plane" if plan.initiates else f"{joins} as control plane"
        listed = ", ".join(plan.family.packages)
        archives = ", ".join(each.path for each in plan.archives)
        done: dict[str, object] = {
            f"trust the repository {repository_name(plan.repository)}": plan.repository.needed,
            f"install {listed}: {plan.version}{ASKED_LATER}": plan.needed,
            "hold the packages": plan.hold,
            f"write {', '.join(file.path for file in plan.files)}": plan.files,
            "restart containerd with its new configuration": plan.containerd
            and plan.containerd.change,
            f"import the images of {archives}": archives,
            "reset what an earlier run left": plan.reset,
            joins: not plan.joined,
            "install the network of the pods": plan.networks,
            "wait until the node is Ready": plan.waits,
        }
        return named(self.name, done)

    def describe(self, plan: AnyPlan) -> dict[str, Any]:
        return plan.describe()

    def versions(self, plan: AnyPlan, entry: KubernetesEntry) -> tuple[str | None, str | None]:
        return plan.before, plan.version if plan.needed else plan.before

    def files(self, plan: AnyPlan) -> tuple[FileWrite, ...]:
        return plan.files

    def repository(self, plan: AnyPlan) -> RepositoryPlan | None:
        return None if isinstance(plan, K3sPlan) else plan.repository

    def writes(self, path: str, catalog: KubernetesCatalog) -> bool:
        layouts = catalog.kubernetes.repository.layouts
        sources = {name for each in layouts for name in (each.file, each.keyring)}
        own = (f"{CERTS}/", f"{FOLDER}/", f"{CONTAINERD}/")
        return path in {MODULES, SYSCTLS, *UNIT_FILES, *sources} or path.startswith(own)

    def removal(
        self, settings: KubernetesSettings, context: RemovalContext[KubernetesEntry]
    ) -> KubernetesRemoval | None:
        return plan_kubernetes_removal(settings, context)

    def began(
        self, facts: NodeFacts, written: tuple[str, ...], images: tuple[str, ...], catalog: Any
    ) -> bool:
        """k3s needs no packages, and its program is no file of these."""
        noted = not NODE.isdisjoint(facts.cluster_host.paths)
        return noted or not UNIT_FILES.isdisjoint(written)

    def main_packages(self, catalog: KubernetesCatalog) -> tuple[str, ...]:
        return ("kubelet",)


ROLE = KubernetesRole()
