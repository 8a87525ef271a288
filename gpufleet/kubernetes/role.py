"""Kubernetes as a role of a node. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from gpufleet.core.findings import Finding
from gpufleet.core.inventory import CONTROL_PLANE
from gpufleet.core.versions import version_tuple
from gpufleet.facts.model import ClusterHost, NodeFacts
from gpufleet.host.file_write import FileWrite
from gpufleet.kubernetes.containerd import CERTS
from gpufleet.kubernetes.findings import cluster as found
from gpufleet.kubernetes.images import with_archives
from gpufleet.kubernetes.kubeadm import cgroup_driver
from gpufleet.kubernetes.models import KubernetesCatalog
from gpufleet.kubernetes.notes import JOINED, KUBELET, KUBERNETES_BEGUN_PATH, MODULES, NODE, SYSCTLS
from gpufleet.kubernetes.plan import KubernetesPlan, host_files, plan_kubernetes
from gpufleet.kubernetes.preflight import NODE_PORTS
from gpufleet.kubernetes.record import KubernetesEntry
from gpufleet.kubernetes.removal import KubernetesRemoval, plan_kubernetes_removal
from gpufleet.kubernetes.settings import KubernetesSettings
from gpufleet.packages.transaction import PackageTransaction, repository_answer
from gpufleet.role.impact import NO_IMPACT, Impact
from gpufleet.role.place import Place, PlaceQuestion
from gpufleet.role.protocol import RemovalContext, Role, RoleContext, prefix_role, repository_name
from gpufleet.role.result import RoleResult, file_digests
from gpufleet.toolkit.record import ChangesPart, FilePart


class KubernetesRole(Role[KubernetesSettings, KubernetesPlan, KubernetesEntry]):
    """A node of a Kubernetes cluster, by kubeadm."""

    name = "kubernetes"
    needs_gpu = False
    settings = KubernetesSettings
    entry = KubernetesEntry

    def ports(self, settings: KubernetesSettings) -> tuple[int, ...]:
        return NODE_PORTS["control-plane"] if settings.enabled else ()

    def paths(self, settings: KubernetesSettings) -> tuple[str, ...]:
        return tuple(file.path for file in host_files(settings)) if settings.enabled else ()

    def requires(
        self, settings: KubernetesSettings, catalog: KubernetesCatalog
    ) -> Mapping[str, str]:
        if not settings.enabled:
            return {}
        known = catalog.kubernetes
        minor = ".".join((settings.version or known.default).split(".")[:2])
        return {"containerd": known.containerd(minor), "cgroup-driver": cgroup_driver(settings)}

    def question(
        self, settings: KubernetesSettings, facts: NodeFacts, place: Place
    ) -> PlaceQuestion | None:
        """On the first control plane: whether the cluster exists already."""
        paths = facts.cluster_host.paths
        leads = CONTROL_PLANE in place.groups and place.position == 0
        if not settings.enabled or not leads or {JOINED, KUBELET} <= paths:
            return None
        own = KUBERNETES_BEGUN_PATH in paths  # the API that responds may be from an earlier run
        several = len(place.control_planes) > 1
        return PlaceQuestion(JOINED if several else "", "" if own else settings.endpoint or "")

    def plan(
        self, settings: KubernetesSettings, context: RoleContext
    ) -> tuple[KubernetesPlan | None, tuple[Finding, ...]]:
        return plan_kubernetes(settings, context)

    def beside(
        self,
        plan: KubernetesPlan | None,
        settings: KubernetesSettings,
        facts: NodeFacts,
        plane: NodeFacts,
    ) -> Iterable[Finding]:
        # with an endpoint, the first may be a new machine that joins the others
        if settings.enabled and (JOINED in plane.cluster_host.paths or not settings.endpoint):
            yield from check_same_cluster(facts.cluster_host, plane.cluster_host)
        if plan and not plan.joined:
            yield from check_version_skew(plan.version, plane)

    def converged(self, plan: KubernetesPlan, driver: str | None) -> bool:
        return plan.converged

    def steps(self, plan: KubernetesPlan, context: RoleContext) -> list[str]:
        by = plan.sources[0] if plan.sources else plan.control_plane
        joins = f"join the cluster of {by}"
        if plan.part == "control-plane":
            joins = "start the control plane" if plan.initiates else f"{joins} as control plane"
        listed = ", ".join(plan.transaction.packages)
        archives = ", ".join(each.path for each in plan.archives)
        done: dict[str, object] = {
            f"trust the repository {repository_name(plan.repository)}": plan.repository.needed,
            f"install {listed}: {plan.version}{repository_answer(plan.transaction)}": plan.needed,
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
        return prefix_role(self.name, done)

    def outcome(
        self, settings: KubernetesSettings, plan: KubernetesPlan, context: RoleContext
    ) -> RoleResult:
        return conclude_kubernetes(settings, context.facts, plan, None)

    def describe(self, plan: KubernetesPlan) -> dict[str, Any]:
        return plan.describe()

    def versions(
        self, plan: KubernetesPlan, entry: KubernetesEntry
    ) -> tuple[str | None, str | None]:
        return plan.before, plan.version if plan.needed else plan.before

    def files(self, plan: KubernetesPlan) -> tuple[FileWrite, ...]:
        return plan.files

    def impact(self, plan: KubernetesPlan, context: RoleContext) -> Impact:
        runtime = plan.containerd
        if runtime is None or not runtime.changes:
            return NO_IMPACT
        there = context.facts.runtimes.get(runtime.key)
        restarts = {runtime.unit: there.containers if there else 0}
        return Impact(restarts, tuple(change.path for change in runtime.changes))

    def writes(self, path: str, catalog: KubernetesCatalog) -> bool:
        layouts = catalog.kubernetes.repository.layouts
        sources = {name for each in layouts for name in (each.file, each.keyring)}
        return path in {MODULES, SYSCTLS, *sources} or path.startswith(f"{CERTS}/")

    def removal(
        self, settings: KubernetesSettings, context: RemovalContext[KubernetesEntry]
    ) -> KubernetesRemoval | None:
        return plan_kubernetes_removal(settings, context)

    def began(
        self, facts: NodeFacts, written: tuple[str, ...], images: tuple[str, ...], catalog: Any
    ) -> bool:
        return not NODE.isdisjoint(facts.cluster_host.paths)

    def main_packages(self, catalog: KubernetesCatalog) -> tuple[str, ...]:
        return ("kubelet",)


def check_same_cluster(host: ClusterHost, plane: ClusterHost) -> Iterator[Finding]:
    """A finding if a node's cluster is not the first control plane's: they have no authority in
    common, or that control plane has no cluster."""
    if JOINED not in host.paths or not host.authorities:
        return
    known = plane.authorities
    if JOINED not in plane.paths or (known and host.authorities.isdisjoint(known)):
        yield found.NODE_ELSEWHERE(control_plane=plane.name)


def check_version_skew(version: str, plane: NodeFacts) -> Iterator[Finding]:
    """A finding if the host would get a newer minor than its control plane has."""
    kubelet = plane.packages.get("kubelet")
    if kubelet is None or JOINED not in plane.cluster_host.paths:
        return
    if version_tuple(version)[:2] > version_tuple(kubelet.upstream)[:2]:
        yield found.VERSION_AHEAD(installed=version, cluster=kubelet.upstream)


def conclude_kubernetes(
    settings: KubernetesSettings,
    facts: NodeFacts,
    plan: KubernetesPlan,
    found: PackageTransaction | None,
) -> RoleResult:
    """The state of the host after the run. `found`: the transaction, if one ran."""
    old = facts.provenance.entry(KubernetesEntry)
    version = found.version if found else plan.before
    part = old.containerd
    if made := plan.containerd:
        part = FilePart(config=made.config, changes=ChangesPart.of(made.record))
    entry = KubernetesEntry(
        version=version,
        part=plan.part,
        network=plan.network,
        containerd=part,
        packages=plan.transaction.versions(found, old),
        held=settings.hold,
        **with_archives(settings.image_archives, old),
    )
    return RoleResult(entry, file_digests(plan.wanted_files), version)


ROLE = KubernetesRole()
