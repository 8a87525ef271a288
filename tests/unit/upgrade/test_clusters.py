"""Which node is which host, where machine ids are copies of each other."""

from __future__ import annotations

from typing import Any

import pytest

from gpufleet.kube.operations.access import KubeAccess
from gpufleet.upgrade.models import HostView
from gpufleet.upgrade.operations import clusters
from gpufleet.upgrade.operations.clusters import find_nodes


def node(name: str, machine: str) -> dict[str, Any]:
    ready = {"type": "Ready", "status": "True"}
    status = {"conditions": [ready], "nodeInfo": {"machineID": machine}}
    return {"metadata": {"name": name}, "status": status}


def found(
    monkeypatch: pytest.MonkeyPatch, nodes: list[dict[str, Any]], *views: HostView
) -> dict[str, str]:
    class Api:
        context = "c"

        def __init__(self, access: KubeAccess) -> None: ...

        def list(self, path: str) -> list[dict[str, Any]]:
            return nodes if path == "/api/v1/nodes" else []

        def close(self) -> None: ...

    monkeypatch.setattr(clusters, "ClusterApi", Api)
    seen, places = find_nodes(views, [KubeAccess("file", "")])
    for view in seen:
        assert (view.name in places) is not any("GF067" in each for each in view.refusals)
    return {name: place.node for name, place in places.items()}


def host(name: str, machine: str) -> HostView:
    return HostView(name, kubelet=True, machine=machine)


def test_a_node_is_found_by_its_machine_id(monkeypatch: pytest.MonkeyPatch) -> None:
    nodes = [node("a", "1"), node("b", "2")]
    assert found(monkeypatch, nodes, host("x", "2"), host("y", "1")) == {"x": "b", "y": "a"}


def test_nodes_with_the_same_machine_id_are_not_guessed(monkeypatch: pytest.MonkeyPatch) -> None:
    nodes = [node("a", "1"), node("b", "1"), node("c", "2")]
    assert found(monkeypatch, nodes, host("x", "1"), host("z", "2")) == {"z": "c"}


def test_hosts_with_the_same_machine_id_share_no_node(monkeypatch: pytest.MonkeyPatch) -> None:
    assert found(monkeypatch, [node("a", "1")], host("x", "1"), host("y", "1")) == {}
