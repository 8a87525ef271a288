"""Reads what gpufleet created in a cluster, and who uses it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gpufleet.core.allowance import all_lists
from gpufleet.gpu_stack.builder import our_releases
from gpufleet.gpu_stack.counters import exporter_namespace
from gpufleet.gpu_stack.operations.removal_reads import CRDS, namespaced, objects_in, reasons
from gpufleet.gpu_stack.remains import (
    ChartCrd,
    Leaving,
    Owned,
    Remains,
    gpu_pods,
    is_ours,
    marked_nodes,
    owned,
    ref_of,
    runtime_classes,
    users_of,
)
from gpufleet.gpu_stack.removal import leaving_of
from gpufleet.gpu_stack.settings import ClusterSettings
from gpufleet.helm.chart_models import ChartCatalog
from gpufleet.helm.release import OWNER_LABEL
from gpufleet.kube.facts import ClusterFacts, ObjectRef, ReleaseRef
from gpufleet.kube.helm_releases import RELEASE_TYPE, revision_of
from gpufleet.kube.operations.api import METADATA_ONLY, ClusterApi
from gpufleet.kube.operations.gather import Ask, ask_all, ask_each
from gpufleet.kube.parse import release_of
from gpufleet.monitoring.prometheus_stack import GRAFANA_SECRET

NAMESPACES = "/api/v1/namespaces"
MONITORING = "/apis/monitoring.coreos.com/v1/namespaces"


def gather_remains(
    api: ClusterApi, facts: ClusterFacts, settings: ClusterSettings, catalog: ChartCatalog
) -> Remains:
    """What gpufleet created, beside the releases in `facts`. Raises ClusterProblem."""
    space = settings.monitoring.namespace
    exporter_space = exporter_namespace(settings.monitoring)
    paths = {
        "ConfigMap": f"/api/v1/namespaces/{space}/configmaps",
        "PrometheusRule": f"{MONITORING}/{space}/prometheusrules",
        "ServiceMonitor": f"{MONITORING}/{exporter_space}/servicemonitors",
        "Secret": f"/api/v1/namespaces/{space}/secrets",
        "RuntimeClass": f"{_runtime_api(facts)}/runtimeclasses",
        "Service": "/api/v1/namespaces/kube-system/services",
    }
    allowance = all_lists()
    found = ask_all(api, _asks(paths), allowance)
    refs = our_releases(settings)
    leaving = leaving_of(settings, facts, catalog)
    crds = [item for item in found["crds"] if _concerns(item, refs, catalog)]
    objects, refused = ask_each(api, _object_asks(crds, facts), allowance)
    unknown = reasons(refused)
    namespaces = owned("Namespace", NAMESPACES, found["namespaces"])
    secrets = [ref_of(item, "Secret") for item in found["Secret"] if not is_ours(item)]
    return Remains(
        objects=tuple(
            one for kind, path in paths.items() for one in owned(kind, path, found[kind])
        ),
        unmarked=tuple(ref for ref in secrets if ref.name == GRAFANA_SECRET),
        nodes=marked_nodes(found["nodes"]),
        left={
            name: left
            for name in catalog.charts
            if (left := _left(name, found, paths, refs, catalog))
        },
        namespaces=namespaces,
        filled=_filled(api, namespaces, facts),
        crds=tuple(_crd(item, objects, unknown, facts, leaving) for item in crds),
        pods=gpu_pods(found["pods"], catalog.resource),
        classes=runtime_classes(found["pods"]),
        claims=tuple(ref_of(item, "PersistentVolumeClaim") for item in found["claims"]),
        elsewhere=_elsewhere(found["releases"], refs),
    )


def _left(
    chart: str,
    found: Mapping[str, Any],
    paths: Mapping[str, str],
    refs: Sequence[ReleaseRef],
    catalog: ChartCatalog,
) -> tuple[Owned, ...]:
    """What the release of a chart leaves behind, as far as it is there. `paths`: kind -> path of
    its list, whose items are in `found`."""
    spaces = {ref.name: ref.namespace for ref in refs}
    wanted = {
        ObjectRef(one.kind, one.namespace or spaces[chart], one.name)
        for one in catalog.charts[chart].left_behind
    }
    return tuple(
        Owned(ref, f"{paths[ref.kind]}/{ref.name}")
        for ref in sorted(wanted)
        if ref in {ref_of(item, ref.kind) for item in found[ref.kind]}
    )


def _filled(
    api: ClusterApi, namespaces: Sequence[Owned], facts: ClusterFacts
) -> dict[str, tuple[ObjectRef, ...]]:
    """The known objects of gpufleet's namespaces without a release: others lose theirs first. They
    are read again before the namespace is deleted."""
    full = {release.namespace for release in facts.releases}
    names = [one.ref.name for one in namespaces if one.ref.name not in full]
    if not names:
        return {}
    kinds = namespaced(api)
    return {name: tuple(objects_in(api, name, kinds).of_others) for name in names}


def _runtime_api(facts: ClusterFacts) -> str:
    """The newest version of the API that this cluster serves."""
    version = "v1" if facts.serves_api("node.k8s.io/v1") else "v1beta1"
    return f"/apis/node.k8s.io/{version}"


def _asks(paths: Mapping[str, str]) -> dict[str, Ask]:
    """`paths`: kind -> path of its list."""
    lists = {
        "nodes": "/api/v1/nodes",
        "namespaces": NAMESPACES,
        "claims": "/api/v1/persistentvolumeclaims",
        "crds": CRDS,
    }
    asks = {name: Ask(path, accept=METADATA_ONLY) for name, path in lists.items()}
    asks |= {name: Ask(path, accept=METADATA_ONLY, optional=True) for name, path in paths.items()}
    labelled = {"labelSelector": f"owner=helm,{OWNER_LABEL}"}
    query = {**labelled, "fieldSelector": f"type={RELEASE_TYPE}"}
    asks["releases"] = Ask("/api/v1/secrets", accept=METADATA_ONLY, query=query)
    asks["pods"] = Ask("/api/v1/pods")
    return asks


def _concerns(item: Any, refs: Sequence[ReleaseRef], catalog: ChartCatalog) -> bool:
    """Whether a CRD is gpufleet's, one of its releases', or of the group of one of the charts."""
    group = str(item["metadata"]["name"]).split(".", 1)[-1]
    groups = {group for chart in catalog.charts.values() for group in chart.crd_groups}
    return is_ours(item) or release_of(item) in refs or group in groups


def _object_asks(crds: Sequence[Any], facts: ClusterFacts) -> dict[str, Ask]:
    """CRD -> the list of its objects in all namespaces, for those that are served."""
    paths = {item["metadata"]["name"]: _objects(item, facts) for item in crds}
    return {name: Ask(path, accept=METADATA_ONLY) for name, path in paths.items() if path}


def _objects(item: Any, facts: ClusterFacts) -> str:
    name = str(item["metadata"]["name"])
    known = facts.crds.get(name)
    plural, _, group = name.partition(".")
    return f"/apis/{group}/{known.versions[0]}/{plural}" if known and known.versions else ""


def _crd(
    item: Any,
    objects: Mapping[str, Any],
    unknown: Mapping[str, str],
    facts: ClusterFacts,
    leaving: Leaving,
) -> ChartCrd:
    """`objects`: CRD -> what it has; `unknown`: CRD -> why that is not known."""
    name = str(item["metadata"]["name"])
    kind = facts.crds[name].kind if name in facts.crds else name
    return ChartCrd(
        name=name,
        path=f"{CRDS}/{name}",
        ours=is_ours(item),
        users=users_of(name, kind, objects.get(name) or (), leaving),
        unknown="" if name in objects else unknown.get(name, "the API does not serve it"),
        release=release_of(item),
    )


def _elsewhere(secrets: Sequence[Any], refs: Sequence[ReleaseRef]) -> tuple[ReleaseRef, ...]:
    """Releases with gpufleet's label that the settings do not name."""
    known = [revision_of(item) for item in secrets]
    return tuple(sorted({one[0] for one in known if one and one[0] not in refs}))
