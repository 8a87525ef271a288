"""Obstacles to a change of a Helm release: its namespace, lost values, ports, kinds. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from gpufleet.core.findings import Finding, Severity
from gpufleet.helm.chart_values import same_values, values_mark
from gpufleet.helm.findings import releases as findings
from gpufleet.helm.readiness import report_left_out, with_labels
from gpufleet.helm.release import VALUES_LABEL, Release, ReleasePlan, is_our_release
from gpufleet.kube.facts import ClusterFacts, HelmRelease
from gpufleet.kube.objects import POD_SECURITY_LABEL
from gpufleet.kube.parse import object_ref, placement_of
from gpufleet.kube.scheduling import fitting_nodes, why_none

STRICT = ("baseline", "restricted")  # pod security without host ports, network and device nodes


def find_obstacles(
    wanted: Release, found: HelmRelease | None, facts: ClusterFacts
) -> Iterator[Finding]:
    """Obstacles to any change."""
    space = facts.namespaces.get(wanted.namespace)
    if space and space.terminating:
        yield findings.NAMESPACE_ENDS(namespace=space.name)
    level = space.labels.get(POD_SECURITY_LABEL) if space else None
    if level in STRICT:
        yield findings.POD_SECURITY(namespace=wanted.namespace, level=level, release=wanted.ref)
    if found is None:
        return
    lost = list(_lost(found.values, wanted.values))
    keys = ", ".join(lost)
    mark = found.labels.get(VALUES_LABEL)
    if not is_our_release(found) and not wanted.adopt:
        yield findings.NOT_OURS(
            release=found.ref,
            chart=f"{found.chart} {found.chart_version}",
            lost=f" Taken over, it would lose or change these values: {keys}." if keys else "",
            left_by=wanted.left_by,
        )
    elif lost and mark is not None and mark != values_mark(found.values):
        # another user set values on our release: a manual upgrade inherits the labels
        yield findings.VALUES_EDITED(
            release=found.ref,
            keys=keys,
            name=found.name,
            namespace=found.namespace,
            revision=found.revision,
        )


def _lost(old: Mapping[str, Any], new: Mapping[str, Any], path: str = "") -> Iterator[str]:
    """Paths of values in `old` that `new` lacks or changes."""
    for key, value in old.items():
        here = f"{path}{key}"
        other = new.get(key)
        if isinstance(value, Mapping) and isinstance(other, Mapping):
            yield from _lost(value, other, here + ".")
        elif key not in new or not same_values(value, other):
            yield here


def taken_ports(
    plan: ReleasePlan, objects: Sequence[Mapping[str, Any]], facts: ClusterFacts
) -> Iterator[Finding]:
    ref = plan.release.ref
    held = {port.port: port for port in facts.node_ports if port.release != ref}
    for item in objects:
        if item.get("kind") != "Service":
            continue
        for port in (item.get("spec") or {}).get("ports") or ():
            holder = held.get(port.get("nodePort") or 0)
            if holder:
                name = f"{holder.namespace}/{holder.service}"
                yield findings.NODE_PORT_TAKEN(release=ref, port=holder.port, holder=name)


def missing_kinds(
    plan: ReleasePlan,
    objects: Sequence[Mapping[str, Any]],
    facts: ClusterFacts,
    added_apis: Collection[str],
) -> Iterator[Finding]:
    """Objects of an API that is neither served nor added by the CRDs of this or earlier charts."""
    crds = [item for item in objects if item.get("kind") == "CustomResourceDefinition"]
    crds += [step.manifest for step in plan.crds]
    groups = {crd["spec"]["group"] for crd in crds} | {api.split("/")[0] for api in added_apis}
    missing = {
        (str(item.get("kind")), str(item.get("apiVersion")))
        for item in objects
        if item.get("apiVersion")
        and not facts.serves_api(str(item["apiVersion"]))
        and str(item["apiVersion"]).split("/")[0] not in groups
    }
    for kind, version in sorted(missing):
        yield findings.KIND_MISSING(release=plan.release.ref, kind=kind, version=version)


def left_out(
    plan: ReleasePlan, objects: Sequence[Mapping[str, Any]], facts: ClusterFacts
) -> Iterator[Finding]:
    """GPU nodes that do not fit the placement of a rendered DaemonSet; a blocker if none fits."""
    expected = plan.release.ready
    for item in objects:
        name = object_ref(item).name
        if item.get("kind") != "DaemonSet" or not expected.nodes.get(name):
            continue
        placement = placement_of(item["spec"]["template"]["spec"])
        known = [node for node in facts.nodes if node.name in expected.nodes[name]]
        nodes = with_labels(expected.labels, known)
        usable = [node for node in nodes if node.usable]
        if usable and not fitting_nodes(placement, usable):
            why = why_none(placement, usable)
            yield findings.NO_PODS(Severity.BLOCKER, daemonset=name, reason=why)
        else:
            yield from report_left_out(f"{plan.release.namespace}/{name}", placement, nodes)


def apis_of(crd: Mapping[str, Any]) -> Iterator[str]:
    """APIs that a CRD adds, in the form of .Capabilities: "group/version", "group/version/Kind"."""
    spec = crd["spec"]
    for version in spec.get("versions") or ({"name": spec.get("version")},):
        api = f"{spec['group']}/{version['name']}"
        yield from (api, f"{api}/{spec['names']['kind']}")
