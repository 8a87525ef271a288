"""A release as objects of Flux or Argo CD. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import yaml

from gpufleet.core.render import render_template
from gpufleet.helm.release import Release
from gpufleet.kube.keepers import RENDERED_PREFIX

Style = Literal["values", "flux", "argocd"]
LOGINS_SECRET = "gpufleet-charts"  # Flux's Secret with the credentials of cluster_chart_logins


def flux_objects(release: Release, earlier: Sequence[Release]) -> list[dict[str, Any]]:
    """The source of the chart and the HelmRelease, in the namespace of the release: Flux keeps
    Helm's record there. It waits for the release before it."""
    after = [
        {"name": object_name(before), "namespace": before.namespace} for before in earlier[-1:]
    ]
    text = render_template(
        "gitops/flux.yaml",
        **_about(release),
        after=after,
        oci=release.source.kind == "oci",
        location=release.source.location,
        plain_http=release.source.plain_http,
        secret=LOGINS_SECRET if release.source.logins else "",
        timeout=release.ready.timeout,
    )
    source, made = yaml.safe_load_all(text)
    made["spec"]["values"] = dict(release.values)
    return [source, made]


def argocd_objects(release: Release, earlier: Sequence[Release]) -> list[dict[str, Any]]:
    """The Application. Argo CD reads the URL of a registry without its scheme and the chart's name.

    Source: https://argo-cd.readthedocs.io/en/stable/user-guide/helm/ (read 2026-11-29)
    """
    location = release.source.location
    if release.source.kind == "oci":
        location = location.removeprefix("oci://").removesuffix(f"/{release.chart}")
    text = render_template(
        "gitops/argocd.yaml", **_about(release), location=location, wave=str(len(earlier))
    )
    made = yaml.safe_load(text)
    made["spec"]["source"]["helm"]["valuesObject"] = dict(release.values)
    return [made]


def object_name(release: Release) -> str:
    """The name of the release's HelmRelease or Application: gpufleet recognizes its own by it."""
    return f"{RENDERED_PREFIX}{release.name}"


def _about(release: Release) -> dict[str, str]:
    return {
        "own": object_name(release),
        "namespace": release.namespace,
        "release": release.name,
        "chart": release.chart,
        "version": release.version,
    }
