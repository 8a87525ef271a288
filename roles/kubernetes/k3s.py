"""k3s on one host: what is carried out, in order."""

from __future__ import annotations

from gpufleet.host import files
from gpufleet.kubernetes.conclude import conclude_k3s
from gpufleet.kubernetes.k3s.plan import K3sPlan
from gpufleet.kubernetes.operations import joining, k3s
from gpufleet.kubernetes.role import ROLE as KUBERNETES
from gpufleet.node.operations import provenance
from gpufleet.node.operations.node import Node


def steps(node: Node, plan: K3sPlan) -> None:
    """The container toolkit is there by now: k3s finds its runtime when it starts."""
    settings = node.settings.of(KUBERNETES)
    k3s.begin("Begin to make the host a node", plan)
    k3s.install("Install k3s and its images", plan.missing)
    files.write("Write the configuration of k3s", node.facts, plan.files)
    k3s.restart("Restart k3s", plan)
    k3s.start("Start the server", plan)
    k3s.join("Join the cluster", plan)
    k3s.wait_ready("Wait until the node is Ready", plan)
    joining.fetch_access(
        "Write the kubeconfig", plan, settings.kubeconfig, k3s.access_command(plan)
    )
    provenance.record("Record what was installed", node, lambda: conclude_k3s(node.facts, plan))
