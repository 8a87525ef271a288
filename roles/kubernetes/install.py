"""Installs Kubernetes on one host, in this order."""

from __future__ import annotations

from gpufleet.core.paths import expand_user_path
from gpufleet.core.render import render_template
from gpufleet.host import files
from gpufleet.host.operation import host_role
from gpufleet.kubernetes.access import leads_elsewhere
from gpufleet.kubernetes.operations import control_planes, images, joining
from gpufleet.kubernetes.plan import (
    KubernetesPlan,
)
from gpufleet.kubernetes.role import ROLE as KUBERNETES
from gpufleet.kubernetes.role import conclude_kubernetes
from gpufleet.node.catalog import load_catalog
from gpufleet.node.operations import provenance
from gpufleet.node.operations.node import RunNode
from gpufleet.packages.operations import repository
from gpufleet.packages.operations import transaction as packages
from gpufleet.role.result import RoleResult
from gpufleet.toolkit import operations as runtimes


def install(node: RunNode) -> None:
    """Apply the Kubernetes plan to `node`; does nothing if Kubernetes is not enabled."""
    plan = node.plan.of(KUBERNETES)
    if plan is None or _settled(node, plan):
        return
    _apply(node, plan)


def _settled(node: RunNode, plan: KubernetesPlan) -> bool:
    """True if no step has work to do. Even then, steps cost more than asking the host."""
    settings = node.settings.of(KUBERNETES)
    lacks = _lacks_access(settings.kubeconfig, node.facts.cluster_host.authorities)
    if not plan.converged or (lacks and plan.part == "control-plane"):
        return False
    return provenance.is_current(node, conclude_kubernetes(settings, node.facts, plan, None))


@host_role("Kubernetes")
def _apply(node: RunNode, plan: KubernetesPlan) -> None:
    settings, timeout = node.settings.of(KUBERNETES), node.settings.host.lock_timeout
    wanted = plan.transaction

    def latest() -> KubernetesPlan:
        """The plan after the run installed containerd, if it did."""
        return node.plan.of(KUBERNETES) or plan

    known = load_catalog().kubernetes.flannel
    manifest = render_template(
        "kubernetes/flannel.yaml", flannel=known, network=settings.pod_subnet
    )

    repository.trust_repository(
        "Trust the Kubernetes repository", plan.repository, "kubernetes", timeout
    )
    found = packages.resolve_and_download("Resolve and download the Kubernetes packages", wanted)
    packages.install_packages("Install kubelet, kubeadm and kubectl", wanted, found)
    packages.hold_packages("Hold the packages", wanted, plan.hold)
    files.write_files("Write settings of the kernel and registries", node.facts, plan.files)
    joining.prepare_kernel("Prepare the kernel", plan)
    runtimes.configure_runtime(
        "Configure containerd for the kubelet", node.facts, lambda: latest().containerd
    )

    images.import_images("Import container images", plan.archives)

    def installed() -> str | None:
        return found.value.version if found.value else plan.before

    def result() -> RoleResult:
        return conclude_kubernetes(settings, node.facts, latest(), found.value)

    joining.start_control_plane("Start the control plane", plan, settings, installed)
    joining.install_network("Install the network of the pods", plan, manifest)
    control_planes.join_control_plane(
        "Join the cluster as a control plane", plan, settings, installed
    )
    joining.join_worker("Join the cluster", plan, settings, installed)
    joining.wait_ready("Wait until the node is Ready", plan)
    joining.fetch_access("Write the kubeconfig", plan, settings.kubeconfig)
    provenance.record_role("Record what was installed", node, result)


def _lacks_access(path: str | None, authorities: frozenset[str]) -> bool:
    """True if the kubeconfig is wanted but is missing or belongs to another cluster."""
    if path is None:
        return False
    file = expand_user_path(path)
    return not file.is_file() or leads_elsewhere(file.read_text("utf-8", "replace"), authorities)
