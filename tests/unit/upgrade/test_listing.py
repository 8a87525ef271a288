"""Nodes and pods of a round: one list of all where many are wanted; the API is in memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import pytest

from gpufleet.kube.operations.api import ClusterApi
from gpufleet.upgrade.operations.listing import nodes_of, pods_of
from gpufleet.upgrade.pods import needed


def node(name: str) -> dict[str, Any]:
    return {"metadata": {"name": name}}


def pod(name: str, place: str | None) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"nodeName": place} if place else {}}


class Api:
    """Eight nodes with a pod each, and a pod without a node."""

    def __init__(self) -> None:
        self.nodes = [node(f"n{i}") for i in range(8)]
        self.pods = [*(pod(f"p{i}", f"n{i}") for i in range(8)), pod("pending", None)]
        self.asked: list[str] = []

    def find(self, path: str) -> Any:
        self.asked.append(path)
        return next((n for n in self.nodes if path.endswith("/" + n["metadata"]["name"])), None)

    def list(
        self, path: str, accept: str = "",
        kept: Callable[[Any], Any] = lambda item: item, /, fieldSelector: str = "",
    ) -> list[Any]:  # fmt: skip
        self.asked.append(f"{path}?{fieldSelector}")
        items = self.nodes if path.endswith("nodes") else self.pods
        name = fieldSelector.partition("=")[2]
        found = [item for item in items if not name or item["spec"].get("nodeName") == name]
        return [each for item in found if (each := kept(item))]


@pytest.mark.parametrize(
    ("names", "size", "requests"),
    [(["n1"], 8, 1), (["n1", "n2"], 8, 1), (["n1", "n2"], 9, 2), (["n1", "n2"], 0, 2)],
)
def test_many_nodes_need_one_list(names: list[str], size: int, requests: int) -> None:
    api = Api()
    found = pods_of(cast(ClusterApi, api), names, size)
    assert found == {name: [needed(pod(f"p{name[1:]}", name))] for name in names}
    assert len(api.asked) == requests
    api.asked.clear()
    there = nodes_of(cast(ClusterApi, api), [*names, "gone"], size)
    assert there == {name: node(name) for name in names}
    assert len(api.asked) == (1 if 4 * (len(names) + 1) >= size > 0 else len(names) + 1)


def test_of_a_long_list_only_what_is_wanted_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    pages = iter([
        {"items": [pod("a", "n0"), pod("b", "other")], "metadata": {"continue": "t"}},
        {"items": [pod("c", None), pod("d", "n0")], "metadata": {}},
    ])  # fmt: skip
    monkeypatch.setattr(ClusterApi, "get", lambda *path, **query: next(pages))
    found = pods_of(ClusterApi.__new__(ClusterApi), ["n0"], 1)
    assert found == {"n0": [needed(pod("a", "n0")), needed(pod("d", "n0"))]}
