"""Which kinds of objects a cluster has."""

from __future__ import annotations

from typing import Any

import pytest

from gpufleet.kube.discovery import (
    group_versions,
    list_of,
    may_be_in_namespaces,
    stored_kinds,
    unserved,
)

VERBS = ["list", "delete"]
MONITORING = "monitoring.coreos.com"


def versions(*names: str) -> list[dict[str, str]]:
    return [{"groupVersion": name} for name in names]


def named(*names: str) -> list[dict[str, Any]]:
    return [{"metadata": {"name": name}} for name in names]


def resource(name: str, kind: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "kind": kind, "namespaced": True, "verbs": VERBS, **more}


def crd(*served: str, scope: str = "Namespaced", established: str = "True") -> dict[str, Any]:
    known = ("v1alpha1", "v1beta1", "v1")
    return {
        "metadata": {"name": f"rules.{MONITORING}"},
        "spec": {
            "group": MONITORING,
            "names": {"plural": "rules", "kind": "Rule"},
            "scope": scope,
            "versions": [
                {"name": name, "served": name in served, "storage": name == "v1"} for name in known
            ],
        },
        "status": {"conditions": [{"type": "Established", "status": established}]},
    }


def test_every_version_of_every_group_is_asked_the_preferred_one_first() -> None:
    groups = {
        "groups": [
            {
                "versions": versions(f"{MONITORING}/v1alpha1", f"{MONITORING}/v1"),
                "preferredVersion": {"groupVersion": f"{MONITORING}/v1"},
            }
        ]
    }
    services = named("v1.", f"v1.{MONITORING}", "v1beta1.metrics.k8s.io")  # the last one is down
    assert group_versions(groups, services) == [
        "v1", f"{MONITORING}/v1", f"{MONITORING}/v1alpha1", "metrics.k8s.io/v1beta1",
    ]  # fmt: skip


def test_kinds_of_every_version_are_listed_once() -> None:
    found = stored_kinds(
        {
            "v1": {
                "resources": [
                    resource("pods", "Pod"),
                    resource("pods/log", "Pod"),
                    resource("bindings", "Binding", verbs=["create"]),
                    resource("nodes", "Node", namespaced=False),
                ]
            },
            f"{MONITORING}/v1": {"resources": [resource("servicemonitors", "ServiceMonitor")]},
            f"{MONITORING}/v1alpha1": {
                "resources": [
                    resource("servicemonitors", "ServiceMonitor"),
                    resource("scrapeconfigs", "ScrapeConfig"),
                ]
            },
            "metrics.k8s.io/v1": {"resources": [resource("pods", "PodMetrics", verbs=["list"])]},
            "example.com/v1": {"resources": None},
        }
    )
    assert [kind.path("team") for kind in found] == [
        "/api/v1/namespaces/team/pods",
        f"/apis/{MONITORING}/v1/namespaces/team/servicemonitors",
        f"/apis/{MONITORING}/v1alpha1/namespaces/team/scrapeconfigs",
    ]
    assert [kind.group for kind in found] == ["", MONITORING, MONITORING]


def test_crds_that_the_discovery_leaves_out_are_named() -> None:
    crds = named(f"servicemonitors.{MONITORING}", f"rules.{MONITORING}", "things.example.com")
    resources = {f"{MONITORING}/v1": {"resources": [resource("servicemonitors", "X")]}}
    assert unserved(crds, resources, []) == [f"rules.{MONITORING}", "things.example.com"]
    assert unserved(crds, resources, ["example.com/v1"]) == [f"rules.{MONITORING}"]


@pytest.mark.parametrize(
    ("served", "path"),
    [
        (("v1alpha1", "v1"), f"/apis/{MONITORING}/v1/rules"),  # as they are stored
        (("v1alpha1",), f"/apis/{MONITORING}/v1alpha1/rules"),
        ((), ""),
    ],
)
def test_objects_of_a_crd_are_listed_in_a_version_that_is_served(
    served: tuple[str, ...], path: str
) -> None:
    assert list_of(crd(*served)) == path


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (crd(), True),
        (crd(scope="Cluster"), False),
        (crd(established="False"), False),
        ({**crd(), "status": {}}, False),
    ],
)
def test_which_crds_namespaces_may_have_objects_of(found: dict[str, Any], expected: bool) -> None:
    assert may_be_in_namespaces(found) is expected
