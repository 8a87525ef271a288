"""Reads Helm releases from Helm's own records in the cluster.

It shares no code with the installation, because that is under check.
"""

from __future__ import annotations

import base64
import json
import re
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from gpufleet.core.versions import version_tuple
from gpufleet.helm.chart_choice import choose_charts, load_charts
from gpufleet.verify.cluster import CheckedCluster

MAX_RECORD_BYTES = 32 * 2**20  # bytes of an unpacked record
LABEL = "gpufleet"  # on the Secrets of our releases
# marks of Flux and Argo CD on the objects that they apply. Sources:
# https://github.com/fluxcd/helm-controller/blob/main/CHANGELOG.md (read 2026-11-29)
# https://argo-cd.readthedocs.io/en/stable/user-guide/resource_tracking/ (read 2026-11-29)
FLUX_NAME = "helm.toolkit.fluxcd.io/name"
TRACKING_ID = "argocd.argoproj.io/tracking-id"
INSTANCES = ("argocd.argoproj.io/instance", "app.kubernetes.io/instance")
CHART_LABELS_OF_OBJECTS = ("helm.sh/chart", "chart")
UNREADABLE = "a record that cannot be read"

Labels = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Deployed:
    """The newest revision of a release. `version`: the chart's, or "" if it cannot be read."""

    version: str
    status: str

    def __str__(self) -> str:
        return f"{self.version or UNREADABLE}, {self.status}"


def deployed_release(cluster: CheckedCluster, chart: str) -> Deployed | None:
    """Our release of a chart in the namespace of the inventory, or None. A release belongs to
    another owner, whatever its name, unless it has gpufleet's label, or Flux or Argo CD applies it
    from files of `gpufleet render`."""
    row = load_charts().charts[chart]
    space = cluster.data.get(row.namespace_key) or row.namespace
    listed = cluster.ask(
        cluster.core.list_namespaced_secret,
        space,
        label_selector=f"owner=helm,name={chart}",
        field_selector="type=helm.sh/release.v1",
    )
    revision = rf"sh\.helm\.release\.v1\.{chart}\.v(\d{{1,9}})"
    revisions = {
        int(match[1]): secret
        for secret in listed.items
        if (match := re.fullmatch(revision, secret.metadata.name))
    }
    applied = [work.metadata for work in cluster.workloads if work.metadata.namespace == space]
    argocd = [each for each in applied if by_argocd(each.annotations, each.labels, chart)]
    if argocd:
        version = _labelled_version(argocd, chart)  # a record of helm is out of date
        return Deployed(version, "deployed") if version else None
    if not revisions:
        return None
    secret = revisions[max(revisions)]
    by_flux = any((about.labels or {}).get(FLUX_NAME) == f"gpufleet-{chart}" for about in applied)
    if LABEL not in (secret.metadata.labels or {}) and not by_flux:
        return None
    return Deployed(_version(secret, chart), (secret.metadata.labels or {}).get("status") or "?")


def by_argocd(annotations: Labels | None, labels: Labels | None, chart: str) -> bool:
    """Whether Argo CD applies an object as a part of our Application of a chart."""
    tracked = (annotations or {}).get(TRACKING_ID, "").split(":")[0].rpartition("_")[2]
    names = (tracked, *((labels or {}).get(label, "") for label in INSTANCES))
    return f"gpufleet-{chart}" in (name.partition(".")[0] for name in names)


def _labelled_version(objects: Iterable[Any], chart: str) -> str:
    """The version of a chart by the labels of its objects, or ""."""
    names = [(about.labels or {}).get(key) for about in objects for key in CHART_LABELS_OF_OBJECTS]
    found = (re.fullmatch(rf"{re.escape(chart)}-(v?\d.*)", name or "") for name in names)
    return next((match[1] for match in found if match), "")


def _version(secret: Any, chart: str) -> str:
    try:
        packed = base64.b64decode(base64.b64decode((secret.data or {})["release"]))
        content = zlib.decompressobj(zlib.MAX_WBITS | 16).decompress(packed, MAX_RECORD_BYTES)
        about = json.loads(content)["chart"]["metadata"]
        return str(about["version"]) if about["name"] == chart else ""
    except (KeyError, TypeError, ValueError, RecursionError, zlib.error):
        return ""


def wrong_versions(
    data: Mapping[str, Any], server: str, found: Mapping[str, Deployed]
) -> list[str]:
    """Releases whose version is wrong for the inventory and the server's version, as text.

    A version that the inventory names must match exactly. For a version that gpufleet chooses, a
    newer one is right too, because a deploy keeps it.
    """
    pins = data.get("cluster_chart_versions") or {}
    chosen = choose_charts(load_charts(), server, data.get("cluster_charts") or "careful", pins)
    wrong = []
    for chart, release in found.items():
        wanted = chosen[chart].version
        have, want = release.version.removeprefix("v"), wanted.removeprefix("v")
        same = want in (have, have.partition("+")[0])  # Flux adds the digest of an archive
        fits = same or (chart not in pins and version_tuple(have) > version_tuple(want))
        if not fits or release.status != "deployed":
            wrong.append(f"{chart} is {release}, wanted is {wanted}")
    return wrong
