"""Plan the CRDs of a chart that are written before the chart itself. Pure.

Helm installs a chart's crds/ only if they are missing and never upgrades them; the API server
then accepts the chart and drops the fields that are missing in its old CRDs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpufleet.core.findings import Finding
from gpufleet.core.versions import version_tuple
from gpufleet.helm.chart import ChartContent
from gpufleet.helm.findings import releases as findings
from gpufleet.helm.release import CrdStep, Release
from gpufleet.helm.strategy import HelmCatalog
from gpufleet.kube.facts import ClusterFacts, Crd
from gpufleet.kube.objects import MANAGED_BY_LABELS

Manifest = Mapping[str, Any]


def plan_crds(
    wanted: Release,
    chart: ChartContent,
    facts: ClusterFacts,
    live: Mapping[str, Manifest],
    catalog: HelmCatalog,
) -> tuple[list[CrdStep], list[Finding]]:
    """The steps, and findings about CRDs that stay unchanged.

    `live`: the chart's complete CRDs in the cluster, by name.
    """
    at = (facts.server.major, facts.server.minor)
    replaced = at <= version_tuple(catalog.crds_replaced_up_to.version)
    steps: list[CrdStep] = []
    kept: dict[tuple[str, str], list[str]] = {}  # reason and chart version -> CRDs
    shipped = {str(each["metadata"]["name"]): each for each in chart.all_crds(wanted.values)}
    for name, manifest in shipped.items():  # two subcharts may contain the same CRD
        known = facts.crds.get(name)
        ours = _version(manifest["metadata"].get("annotations") or {}, wanted)
        theirs = _version(known.annotations, wanted) if known else ""
        why_kept = _why_kept(known, theirs, ours, wanted)
        if why_kept:
            kept.setdefault((why_kept, ours), []).append(name)
        elif name not in live or not _same(live[name], manifest, theirs, ours):
            steps.append(
                CrdStep(
                    name=name,
                    action="update" if name in live else "create",
                    method="replace" if replaced else "apply",
                    before=theirs,
                    after=ours,
                    manifest=_marked(manifest, live.get(name)),
                )
            )
    found = [
        findings.CRD_KEPT(
            count=len(names),
            crds=", ".join(names),
            reason=why,
            chart=f"{chart.name} {chart.version}",
            ours=ours or "other ones",
        )
        for (why, ours), names in kept.items()
    ]
    return steps, found


def _marked(manifest: Manifest, live: Manifest | None) -> Manifest:
    """The CRD with gpufleet's label, if it is new or already has that label."""
    there = ((live or {}).get("metadata") or {}).get("labels") or {}
    if live is not None and not MANAGED_BY_LABELS.items() <= there.items():
        return manifest
    metadata = manifest["metadata"]
    labels = {**(metadata.get("labels") or {}), **MANAGED_BY_LABELS}
    return {**manifest, "metadata": {**metadata, "labels": labels}}


def crds_behind(wanted: Release, app_version: str, facts: ClusterFacts) -> list[str]:
    """CRDs that are older than the installed chart, by their version annotation.

    CRDs without the annotation are ignored: old charts have none.
    """
    annotation = wanted.crd_version
    if not annotation:
        return []
    now = version_tuple(app_version)
    return [
        crd.name
        for crd in facts.crds.values()
        if annotation in crd.annotations
        and crd.release in (None, wanted.ref)
        and version_tuple(crd.annotations[annotation]) < now
    ]


def _version(annotations: Mapping[str, str], wanted: Release) -> str:
    return annotations.get(wanted.crd_version, "").removeprefix("v")


def _why_kept(known: Crd | None, theirs: str, ours: str, wanted: Release) -> str:
    if known is None:
        return ""
    if known.release and known.release != wanted.ref:
        return f"release {known.release} owns them"
    if theirs and ours and version_tuple(theirs) > version_tuple(ours):
        return f"the cluster has {theirs}, which is newer"
    return ""


def _same(live: Manifest, manifest: Manifest, theirs: str, ours: str) -> bool:
    """True if the cluster already has this CRD, by its version or else by its schemas."""
    if theirs and ours:
        return version_tuple(theirs) == version_tuple(ours)
    if ours:
        return False  # the cluster's CRD has no annotation, so it is older
    return _schemas(live) == _schemas(manifest)


def _schemas(manifest: Manifest) -> dict[str, Any]:
    return {
        version["name"]: (version.get("served"), version.get("schema"))
        for version in manifest["spec"]["versions"]
    }


_KIND = "x-kubernetes-group-version-kind"


def is_published(
    definitions: Mapping[str, Any] | None, group: str, kind: str, version: Mapping[str, Any]
) -> bool:
    """True if `definitions` (of /openapi/v2 or v3) have every field of one version of a CRD.

    `version`: an entry of the CRD's spec.versions.
    """
    wanted = {"group": group, "version": version["name"], "kind": kind}
    schema = (version.get("schema") or {}).get("openAPIV3Schema") or {}
    for definition in (definitions or {}).values():
        if wanted in (definition.get(_KIND) or ()):
            return _has_fields(definition, schema)
    return False


def _has_fields(described: Mapping[str, Any], schema: Mapping[str, Any]) -> bool:
    """True if every property of `schema` is published. Ignores parts that the server does not
    publish as an object with properties."""
    if isinstance(schema.get("items"), Mapping) and isinstance(described.get("items"), Mapping):
        return _has_fields(described["items"], schema["items"])
    properties = described.get("properties")
    if not isinstance(properties, Mapping):
        return True
    for name, inner in (schema.get("properties") or {}).items():
        if name not in properties or not _has_fields(properties[name], inner):
            return False
    return True
