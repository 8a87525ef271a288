"""Finds the nodes that a pod can run on, by labels, affinity and taints. Pure.

The rules are those of the DaemonSet controller: nodeSelector, required node affinity, and taints
except those that every DaemonSet tolerates.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from gpufleet.core.names import count_noun
from gpufleet.kube.facts import ClusterNode, Placement, Taint

# https://kubernetes.io/docs/concepts/workloads/controllers/daemonset/#taints-and-tolerations
# (read 2026-11-27). Not among them: not-ready and unreachable with NoSchedule.
_TOLERATED = {
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
}
_OF_HOST_NETWORK = ("node.kubernetes.io/network-unavailable", "NoSchedule")


def fitting_nodes(placement: Placement, nodes: Iterable[ClusterNode]) -> list[ClusterNode]:
    """The nodes on which a DaemonSet with this placement runs a pod."""
    return [node for node in nodes if not why_not(placement, node)]


def why_not(placement: Placement, node: ClusterNode) -> str | None:
    """Why one node gets no pod, as a clause, or None."""
    if not _labels_fit(placement, node):
        selector = placement.node_selector
        missing = {key: value for key, value in selector.items() if node.labels.get(key) != value}
        terms = () if missing else placement.terms
        return f"it does not have {_required(Placement(missing, terms))}"
    taints = [str(taint) for taint in node.taints if not _tolerated(taint, placement)]
    return f"its taint {', '.join(sorted(taints))} is not tolerated" if taints else None


def why_none(placement: Placement, nodes: Iterable[ClusterNode]) -> str:
    """Why no node gets a pod, as a clause: missing labels, or taints."""
    everywhere = list(nodes)
    if not everywhere:
        return "the cluster has no nodes"
    labelled = [node for node in everywhere if _labels_fit(placement, node)]
    if not labelled:
        missing = _required(placement)
        if len(everywhere) == 1:
            return f"the only node does not have {missing}"
        return f"none of the {count_noun(len(everywhere), 'node')} has {missing}"
    taints = [taint for node in labelled for taint in node.taints]
    names = ", ".join(node.name for node in labelled[:3]) + (", …" if len(labelled) > 3 else "")
    listed = ", ".join(sorted({str(each) for each in taints if not _tolerated(each, placement)}))
    return f"the matching nodes ({names}) have taints that it does not tolerate: {listed}"


def _labels_fit(placement: Placement, node: ClusterNode) -> bool:
    if any(node.labels.get(key) != value for key, value in placement.node_selector.items()):
        return False
    return not placement.terms or any(_term_fits(term, node) for term in placement.terms)


def _term_fits(term: Mapping[str, Any], node: ClusterNode) -> bool:
    expressions = term.get("matchExpressions") or ()
    fields = term.get("matchFields") or ()
    if not expressions and not fields:
        return False  # an empty term matches nothing
    return all(_expression_fits(e, node.labels) for e in expressions) and all(
        _expression_fits(e, {"metadata.name": node.name}) for e in fields
    )


def _expression_fits(expression: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    key, operator = expression["key"], expression["operator"]
    values: Sequence[str] = expression.get("values") or ()
    value = labels.get(key)
    if operator == "Exists":
        return value is not None
    if operator == "DoesNotExist":
        return value is None
    if operator == "In":
        return value in values
    if operator == "NotIn":
        return value not in values
    try:
        number, bound = int(value or ""), int(values[0])
    except (ValueError, IndexError):
        return False
    return number > bound if operator == "Gt" else number < bound


def _tolerated(taint: Taint, placement: Placement) -> bool:
    known = (taint.key, taint.effect)
    if taint.effect == "PreferNoSchedule" or known in _TOLERATED:
        return True
    if known == _OF_HOST_NETWORK and placement.host_network:
        return True
    return any(_tolerates(toleration, taint) for toleration in placement.tolerations)


def _tolerates(toleration: Mapping[str, str], taint: Taint) -> bool:
    if toleration.get("effect") and toleration["effect"] != taint.effect:
        return False
    if not toleration.get("key"):
        return toleration.get("operator") == "Exists"
    if toleration["key"] != taint.key:
        return False
    exists = toleration.get("operator") == "Exists"
    return exists or (toleration.get("value") or "") == taint.value


def _required(placement: Placement) -> str:
    """The required labels of a node, as text."""
    fixed = [f"{key}={value}" for key, value in sorted(placement.node_selector.items())]
    terms = [
        " and ".join(_words(e) for e in term.get("matchExpressions") or ())
        for term in placement.terms
    ]
    either = " or ".join(term for term in terms if term)
    return "the label " + " and ".join([*fixed, *([either] if either else [])])


def _words(expression: Mapping[str, Any]) -> str:
    key, operator = expression["key"], expression["operator"]
    values = [str(value) for value in expression.get("values") or ()]
    if operator == "In":
        return f"{key}={'|'.join(values)}"
    if operator == "NotIn":
        return f"{key} other than {'|'.join(values)}"
    if operator == "DoesNotExist":
        return f"no {key}"
    return key if operator == "Exists" else f"{key} {operator} {' '.join(values)}"
