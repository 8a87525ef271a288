"""Decides if a release is ready: its workloads, operated objects and operands. Pure.

The expected pods of a DaemonSet are computed from the current nodes: Ready, able to run its pods,
and matching its placement. `helm --wait` uses the controller's count, so that one NotReady node
makes it fail.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from gpufleet.core.findings import Finding
from gpufleet.core.names import count_noun, list_names
from gpufleet.core.visible import Count
from gpufleet.helm.findings import releases as findings
from gpufleet.helm.release import Operands, Release
from gpufleet.kube.facts import ClusterFacts, ClusterNode, ClusterPolicy, Placement, Workload
from gpufleet.kube.node_answers import has_gpus
from gpufleet.kube.scheduling import fitting_nodes, why_none, why_not

MAX_NODES = 10  # in one finding
READY_STATE = "ready"  # state of a ClusterPolicy; also: ignored, notReady


@dataclass(frozen=True, slots=True)
class Unready:
    """A part of a release that is not ready. `reason`: a clause such as "2 of 3 pods are ready".
    `workload`: its pods may show the cause. `operand`: the release's own operator creates it.
    `missing`: it does not exist."""

    what: str
    reason: str
    workload: Workload | None = None
    operand: bool = False
    missing: bool = False

    def __str__(self) -> str:
        return f"{self.what}: {self.reason}"


def find_unready(wanted: Release, facts: ClusterFacts, *, soon: bool = False) -> list[Unready]:
    """The parts of a release that are not ready. Includes operands only if its own parts are ready.

    `soon`: it was just changed, so programs in the cluster may still label nodes and set states.
    """
    ready, workloads = wanted.ready, facts.workloads_of(wanted.ref)
    labels = ready.labels if soon else {}
    found = [*_workloads(workloads, ready.nodes, labels, facts.nodes)]
    release = facts.release(wanted.namespace, wanted.name)
    makers = {work.maker for work in workloads}
    for ref in release.operated if release else ():
        state = facts.operated.get(ref)
        if state is None and soon and ref not in makers:
            state = "no operator has reported on it yet"
        if state:
            made = next((work for work in workloads if work.maker == ref), None)
            found.append(Unready(f"{ref.kind} {ref.name}", state, made))
    if not found and ready.operands:
        found += _operands(ready.operands, wanted, facts, soon=soon)
    return found


def find_silent(wanted: Release, facts: ClusterFacts) -> tuple[list[str], bool]:
    """The nodes with a pod of the plugin but no allocatable GPUs, and if another node has some.

    A pod of the plugin is ready before it has found a GPU, and between two crashes.
    """
    if not wanted.ready.offering:
        return [], False
    usable = [node for node in facts.nodes if node.usable]
    names = {
        node.name
        for work in facts.workloads_of(wanted.ref)
        for node in fitting_nodes(work.placement, usable)
        if node.name in wanted.ready.nodes.get(work.name, ())
    }
    served = [node for node in facts.nodes if node.name in names]
    silent = [node.name for node in served if not has_gpus(node.allocatable)]
    return silent, len(silent) < len(served)


def find_notes(wanted: Release, facts: ClusterFacts) -> list[Finding]:
    """Warnings about a release that is ready."""
    workloads, ready = facts.workloads_of(wanted.ref), wanted.ready
    found = [*report_down(facts.nodes), *_without_pods(workloads, ready.nodes, facts.nodes)]
    release = facts.release(wanted.namespace, wanted.name)
    makers = {work.maker for work in workloads}
    for ref in release.operated if release else ():
        if ref not in facts.operated and ref not in makers:
            name = f"{ref.kind} {ref.namespace}/{ref.name}"
            found.append(
                findings.OPERATOR_SILENT(object=name, release=wanted.ref, namespace=ref.namespace)
            )
    policy = _policy(wanted, facts)
    if ready.operands and policy and policy.state == READY_STATE:
        needed = ready.operands.nodes
        made = [work for work in _made(ready.operands, wanted, facts) if work.name in needed]
        found += _without_pods(made, needed, facts.nodes)
        if policy.reason == ready.operands.known.no_nodes:
            found.append(findings.OPERATOR_FOUND_NO_GPU(policy=policy.name, message=policy.message))
    return found


def _workloads(
    workloads: Iterable[Workload],
    needed: Mapping[str, Sequence[str]],
    labels: Mapping[str, str],
    nodes: Sequence[ClusterNode],
    *,
    operand: bool = False,
) -> Iterator[Unready]:
    """The workloads that are not ready. `needed`: DaemonSet -> nodes that need a pod of it;
    `labels`: labels that these nodes will get soon."""
    for work in workloads:
        named = [node for node in nodes if node.name in needed.get(work.name, ()) and node.usable]
        reason = _why_unready(work, named, labels, nodes)
        if reason:
            yield Unready(f"{work.kind} {work.name}", reason, work, operand)


def _why_unready(
    work: Workload,
    named: Sequence[ClusterNode],
    labels: Mapping[str, str],
    nodes: Sequence[ClusterNode],
) -> str | None:
    if not work.settled:
        return "its controller has not observed the update yet"
    wanted = work.wanted
    if work.kind == "DaemonSet":
        soon = fitting_nodes(work.placement, with_labels(labels, named))
        if named and not wanted and not fitting_nodes(work.placement, named):
            why = why_none(work.placement, nodes)
            return f"0 desired pods, expected {len(soon) or len(named)}: {why}"
        if wanted < len(soon):
            return f"{count_noun(wanted, 'desired pod')}, expected {len(soon)}"
        usable = [node for node in nodes if node.usable]
        if len(usable) < len(nodes):  # the controller counts a node that is down for a while
            wanted = min(wanted, len(fitting_nodes(work.placement, usable)))
    if work.updated < wanted:
        return f"{work.updated} of {Count(wanted):pod is|pods are} updated"
    if work.old:
        return f"{Count(work.old):pod of the old version remains|pods of the old version remain}"
    if work.ready < wanted:
        return f"{work.ready} of {Count(wanted):pod is|pods are} ready"
    return None


def _operands(
    expected: Operands, wanted: Release, facts: ClusterFacts, *, soon: bool
) -> Iterator[Unready]:
    """The work that a GPU Operator has not finished. Its policy's state alone is not sufficient:
    see `operands` in charts.yaml."""
    known, policy = expected.known, _policy(wanted, facts)
    if policy is None:
        what = f"the ClusterPolicy of release {wanted.ref}"
        yield Unready(what, "it is missing", operand=True, missing=True)
        return
    made = _made(expected, wanted, facts)
    if policy.state != READY_STATE or policy.reason == known.no_labels:
        others = [other.name for other in facts.cluster_policies if other.name != policy.name]
        yield Unready(f"ClusterPolicy {policy.name}", _state(policy, others), operand=True)
    else:
        there = {work.name: work for work in made}
        about = (policy.spec.get("daemonsets") or {}).get("labels") or {}
        chart = about.get(known.chart_label)
        for name in expected.nodes:
            if name not in there:
                yield Unready(f"DaemonSet {name}", "not created yet", operand=True)
            elif chart and there[name].labels.get(known.chart_label) != chart:
                yield Unready(f"DaemonSet {name}", f"not updated to {chart} yet", operand=True)
    for work in made:  # the operator sets the labels that its DaemonSets select
        labels = work.placement.node_selector if soon else {}
        yield from _workloads([work], expected.nodes, labels, facts.nodes, operand=True)


def _state(policy: ClusterPolicy, others: Sequence[str]) -> str:
    detail = policy.message or policy.reason
    if policy.state in ("", "ignored") and others:  # v26.7.0 writes no state for an ignored policy
        return f"it is ignored: the operator reconciles only the oldest, and there is {others[0]}"
    if not policy.state:
        return "the operator has not set its state yet"
    if policy.state == READY_STATE:
        return f"ready with nothing to do: {detail}"
    return f"{policy.state}: {detail}" if detail else policy.state


def _policy(wanted: Release, facts: ClusterFacts) -> ClusterPolicy | None:
    policies = facts.cluster_policies
    return next((policy for policy in policies if policy.release == wanted.ref), None)


def _made(expected: Operands, wanted: Release, facts: ClusterFacts) -> list[Workload]:
    """The DaemonSets that a release's operator created in its own namespace."""
    return [
        work
        for work in facts.workloads
        if work.kind == "DaemonSet"
        and work.namespace == wanted.namespace
        and work.owner
        and work.owner.kind in expected.known.owners
    ]


def with_labels(labels: Mapping[str, str], nodes: Iterable[ClusterNode]) -> list[ClusterNode]:
    """The nodes with labels that they will get soon. Existing labels keep their values."""
    return [replace(node, labels={**labels, **node.labels}) for node in nodes]


def report_down(nodes: Iterable[ClusterNode]) -> list[Finding]:
    """A warning about nodes that are not Ready, so that no pods are expected on them."""
    down = [f"{node.name} ({node.down})" for node in nodes if node.down]
    return [findings.NODES_DOWN(nodes=list_names(down, MAX_NODES))] if down else []


def report_left_out(name: str, placement: Placement, nodes: Iterable[ClusterNode]) -> list[Finding]:
    """A warning about nodes without a pod of the DaemonSet `name` that could have one."""
    why = {node.name: node.foreign or why_not(placement, node) for node in nodes if not node.down}
    out = [f"{node} ({reason})" for node, reason in why.items() if reason]
    return (
        [findings.NODES_LEFT_OUT(daemonset=name, nodes=list_names(out, MAX_NODES))] if out else []
    )


def _without_pods(
    workloads: Iterable[Workload], needed: Mapping[str, Sequence[str]], nodes: Sequence[ClusterNode]
) -> Iterator[Finding]:
    """Warnings about empty DaemonSets, and about nodes without a pod."""
    for work in workloads:
        if work.kind != "DaemonSet" or not work.settled:
            continue
        name = f"{work.namespace}/{work.name}"
        if work.wanted == 0 and work.name not in needed:
            yield findings.NO_PODS(daemonset=name, reason=why_none(work.placement, nodes))
        named = [node for node in nodes if node.name in needed.get(work.name, ())]
        yield from report_left_out(name, work.placement, named)
