"""Whether the operands of a GPU Operator's ClusterPolicy are ready. Pure.

The state of the policy alone is not sufficient: see `operands` in charts.yaml.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gpufleet.core.findings import Finding
from gpufleet.helm.findings import releases as findings
from gpufleet.helm.readiness import report_nodes, unready
from gpufleet.helm.release import Operands, OperandWait, Readiness
from gpufleet.kube.facts import ClusterFacts, ClusterNode, ClusterPolicy, ReleaseRef, Workload

READY, IGNORED = "ready", "ignored"  # states of a ClusterPolicy; notReady is the third


def awaited(expected: Operands, release: ReleaseRef, facts: ClusterFacts) -> OperandWait:
    """The operands that are not ready, by the facts."""
    policies = facts.cluster_policies if facts.serves(expected.known.crd) else None
    operands = owned(expected, release, facts.workloads)
    return operand_wait(expected, release, policies, operands, facts.nodes)


def policy_of(release: ReleaseRef, policies: Sequence[ClusterPolicy]) -> ClusterPolicy | None:
    return next((policy for policy in policies if policy.release == release), None)


def owned(expected: Operands, release: ReleaseRef, workloads: Sequence[Workload]) -> list[Workload]:
    """The DaemonSets that the operator of a release created, in its own namespace."""
    return [
        work
        for work in workloads
        if work.namespace == release.namespace
        and work.owner
        and work.owner.kind in expected.known.owners
    ]


def operand_wait(
    expected: Operands,
    release: ReleaseRef,
    policies: Sequence[ClusterPolicy] | None,
    operands: Sequence[Workload],
    nodes: Sequence[ClusterNode],
    *,
    soon: bool = False,
) -> OperandWait:
    """What to wait for.

    `policies`: all of the cluster, None where the API does not serve them; `operands`: what `owned`
    gives. `soon`: the operator may still be labelling the nodes.
    """
    if policies is None:
        return OperandWait(f"the CRD {expected.known.crd} of its ClusterPolicy", no_policy=True)
    policy = policy_of(release, policies)
    if policy is None:
        return OperandWait(f"the ClusterPolicy of release {release}", no_policy=True)
    waits = [
        entry
        for work in operands
        for entry in unready(_readiness(expected, work, soon=soon), [work], nodes)
    ]
    if policy.state != READY or policy.reason == expected.known.no_labels:
        return OperandWait(_state(policy, policies), (), tuple(waits))
    return OperandWait("", tuple(_missing(expected, policy, operands)), tuple(waits))


def operand_findings(
    expected: Operands,
    release: ReleaseRef,
    policies: Sequence[ClusterPolicy],
    operands: Sequence[Workload] = (),
    nodes: Sequence[ClusterNode] = (),
) -> list[Finding]:
    """Findings about a policy that is ready, and the nodes that its operands leave out."""
    policy = policy_of(release, policies)
    if policy is None or policy.state != READY:
        return []
    found = report_nodes(Readiness(expected.nodes), operands, nodes) if expected.nodes else []
    if policy.reason == expected.known.no_nodes:
        found.append(findings.OPERATOR_FOUND_NO_GPU(policy=policy.name, message=policy.message))
    return found


def _readiness(expected: Operands, work: Workload, *, soon: bool) -> Readiness:
    """When one operand is ready. The operator labels nodes with what its DaemonSets select."""
    return Readiness(expected.nodes, labels=work.placement.node_selector if soon else {})


def _state(policy: ClusterPolicy, policies: Sequence[ClusterPolicy]) -> str:
    name = f"ClusterPolicy {policy.name}"
    detail = f": {policy.message or policy.reason}" if policy.message or policy.reason else ""
    others = ", ".join(other.name for other in policies if other.name != policy.name)
    oldest = f"the operator reconciles only the oldest ClusterPolicy, and there is also {others}"
    if policy.state == IGNORED:
        return f"{name} is ignored{f': {oldest}' if others else detail}"
    if not policy.state:  # v26.7.0 writes no state for one that it ignores
        return f"{name}: the operator has not set its state yet{f'; {oldest}' if others else ''}"
    if policy.state == READY:
        return f"{name} is ready with nothing to do{detail}"
    return f"{name} is {policy.state}{detail}"


def _missing(
    expected: Operands, policy: ClusterPolicy, operands: Sequence[Workload]
) -> Iterator[str]:
    """Required DaemonSets that are missing, or still those of an older chart."""
    there = {work.name: work for work in operands}
    labels = (policy.spec.get("daemonsets") or {}).get("labels") or {}
    chart = labels.get(expected.known.chart_label)
    for name in expected.nodes:
        if name not in there:
            yield f"DaemonSet {name}: not created yet"
        elif chart and there[name].labels.get(expected.known.chart_label) != chart:
            yield f"DaemonSet {name}: not updated to {chart} yet"
