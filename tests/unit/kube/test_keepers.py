"""Flux and Argo CD mark the objects that they apply; gpufleet reads the marks."""

from __future__ import annotations

from typing import Any

import pytest

from gpufleet.kube.keepers import Keeper, keeper_of
from gpufleet.kube.objects import ObjectChange, split_kept

FLUX = {
    "helm.toolkit.fluxcd.io/name": "gpufleet-dcgm-exporter",
    "helm.toolkit.fluxcd.io/namespace": "monitoring",
}
TRACKED = "argocd.argoproj.io/tracking-id"


@pytest.mark.parametrize(
    ("metadata", "keeper", "chart"),
    [
        ({}, None, ""),
        ({"labels": None, "annotations": None}, None, ""),
        (
            {"labels": FLUX},
            Keeper("Flux", "HelmRelease", "monitoring", "gpufleet-dcgm-exporter"),
            "dcgm-exporter",
        ),
        (
            {"labels": {"kustomize.toolkit.fluxcd.io/name": "gpufleet-x"}},
            Keeper("Flux", "Kustomization", "", "gpufleet-x"),
            "",
        ),
        (
            {"annotations": {TRACKED: "gpufleet-gpu-operator:apps/Deployment:gpu-operator/x"}},
            Keeper("Argo CD", "Application", "", "gpufleet-gpu-operator"),
            "gpu-operator",
        ),
        (
            {"annotations": {TRACKED: "argocd_gpufleet-gpu-operator.prod:apps/Deployment:x/x"}},
            Keeper("Argo CD", "Application", "", "gpufleet-gpu-operator.prod"),
            "gpu-operator",
        ),
        (
            {"annotations": {TRACKED: "team_monitoring:apps/Deployment:monitoring/x"}},
            Keeper("Argo CD", "Application", "", "monitoring"),
            "",
        ),
        ({"annotations": {TRACKED: ""}}, None, ""),
        (
            {"labels": {"app.kubernetes.io/instance": "gpufleet-dcgm-exporter"}},
            Keeper("Argo CD", "Application", "", "gpufleet-dcgm-exporter"),
            "dcgm-exporter",
        ),
        ({"labels": {"app.kubernetes.io/instance": "dcgm-exporter"}}, None, ""),
        (
            {"labels": {"argocd.argoproj.io/instance": "monitoring"}},
            Keeper("Argo CD", "Application", "", "monitoring"),
            "",
        ),
        (
            {"labels": {"argocd.argoproj.io/instance": "gpufleet-dcgm-exporter.lab"}},
            Keeper("Argo CD", "Application", "", "gpufleet-dcgm-exporter.lab"),
            "dcgm-exporter",
        ),
    ],
)
def test_the_marks_of_each_tool(
    metadata: dict[str, Any], keeper: Keeper | None, chart: str
) -> None:
    found = keeper_of({"metadata": metadata})
    assert found == keeper
    assert (found.chart if found else "") == chart


def test_changes_of_kept_objects_are_set_apart() -> None:
    changes = [ObjectChange(action, action, {}) for action in ("create", "change", "delete")]
    live = [{"metadata": {"name": name, "labels": FLUX}} for name in ("change", "other")]
    rest, kept = split_kept(changes, [*live, {"metadata": {"name": "delete"}}])
    assert [change.name for change in rest] == ["create", "delete"]
    assert list(kept) == ["change"]
