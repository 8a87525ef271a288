"""A host that is a node of several clusters, where one was left or two contexts lead to one."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from gpufleet.kube.operations.access import KubeAccess
from gpufleet.upgrade.operations import clusters
from gpufleet.upgrade.operations.clusters import find_nodes
from tests.unit.upgrade.test_clusters import host, node, system


@pytest.mark.parametrize(
    ("first", "second", "context"),
    [
        ({"ready": False}, {}, "new"),  # left behind in its first cluster
        ({}, {"ready": False}, "old"),
        ({}, {"uid": "1"}, "old"),  # two contexts of one cluster
        ({"ready": False}, {"ready": False, "uid": "1"}, "old"),
        ({}, {}, ""),
        ({"ready": False}, {"ready": False}, ""),
    ],
)
def test_a_node_of_two_clusters_is_the_only_one_that_is_ready(
    monkeypatch: pytest.MonkeyPatch,
    first: dict[str, Any],
    second: dict[str, Any],
    context: str,
) -> None:
    def listed(api: Any) -> list[Any]:
        about = {"uid": "1", **first} if api.context == "old" else {"uid": "2", **second}
        same = node("x", "1")
        same["metadata"]["uid"] = about["uid"]
        same["status"]["conditions"][0]["status"] = str(about.get("ready", True))
        return [same]

    monkeypatch.setattr(clusters, "every_node", listed)
    monkeypatch.setattr(clusters, "operator_owns_driver", lambda api: False)
    monkeypatch.setattr(
        clusters,
        "ClusterApi",
        lambda access: SimpleNamespace(context=access.context, get=system, close=lambda: None),
    )
    accesses = [KubeAccess("file", "old"), KubeAccess("file", "new")]
    seen, places = find_nodes([host("x", "1")], accesses, {"x": ("x",)})
    assert [place.context for place in places.values()] == ([context] if context else [])
    refused = ["GF273 The host is registered as node x of context old, x of context new;"]
    assert [each[: len(refused[0])] for each in seen[0].refusals if "GF273" in each] == (
        [] if context else refused
    )
