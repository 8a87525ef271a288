"""Watches the operands of a release's GPU Operator: its ClusterPolicy and its DaemonSets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from gpufleet.core.findings import Finding
from gpufleet.helm.findings.releases import OPERATOR_NOT_READY
from gpufleet.helm.operands import operand_findings, operand_wait, owned
from gpufleet.helm.release import Operands, OperandWait
from gpufleet.kube.facts import ClusterNode, ClusterPolicy, ReleaseRef, Workload
from gpufleet.kube.operations.api import ClusterApi
from gpufleet.kube.operations.refused import ApiError
from gpufleet.kube.parse import parse_cluster_policy, parse_workload


@dataclass(slots=True)
class OperandWatch:
    """Watches the operands of one release. `hold`: seconds that they must stay ready; `patience`:
    seconds that the operator has to label the nodes."""

    api: ClusterApi
    release: ReleaseRef
    expected: Operands
    hold: int
    patience: int
    since: float | None = field(default=None, init=False)  # when it was first seen ready
    policies: list[ClusterPolicy] = field(default_factory=list, init=False)
    operands: list[Workload] = field(default_factory=list, init=False)
    nodes: Sequence[ClusterNode] = field(default=(), init=False)

    def look(self, spent: float, nodes: Sequence[ClusterNode]) -> OperandWait:
        """What is still to come, `spent` seconds after waiting began; false where all is there."""
        policies = self._policies()
        self.policies = policies or []
        self.operands, self.nodes = self._operands(), nodes
        found = operand_wait(
            self.expected, self.release, policies, self.operands, nodes, soon=spent < self.patience
        )
        if found:
            self.since = None
            return found
        if self.since is None:
            self.since = spent
        left = self.hold - (spent - self.since)
        return OperandWait(f"it to stay ready for {left:.0f} s") if left > 0 else found

    @property
    def findings(self) -> list[Finding]:
        return operand_findings(
            self.expected, self.release, self.policies, self.operands, self.nodes
        )

    def not_ready(self, seconds: float, reasons: Sequence[str]) -> Finding:
        """Why waiting has ended in vain."""
        return OPERATOR_NOT_READY(
            release=self.release,
            seconds=f"{seconds:.0f}",
            reasons="; ".join(reasons),
            namespace=self.release.namespace,
        )

    def validators(self, wait: OperandWait) -> list[Any]:
        """The pods that validate the node for operands that are not ready."""
        if not wait.unready:
            return []
        selector = f"app in ({','.join(self.expected.known.validators)})"
        spaces = sorted({entry.workload.namespace for entry in wait.unready})
        return [
            pod
            for space in spaces
            for pod in self.api.list(f"/api/v1/namespaces/{space}/pods", labelSelector=selector)
        ]

    def _policies(self) -> list[ClusterPolicy] | None:
        try:
            return [parse_cluster_policy(item) for item in self.api.list(self.expected.known.api)]
        except ApiError as error:
            if error.is_missing:
                return None
            raise

    def _operands(self) -> list[Workload]:
        space = self.release.namespace
        found = self.api.list(f"/apis/apps/v1/namespaces/{space}/daemonsets")
        made = [parse_workload("DaemonSet", item) for item in found]
        return owned(self.expected, self.release, made)
