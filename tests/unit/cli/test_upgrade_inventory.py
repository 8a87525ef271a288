"""The clusters that a run takes from its inventory, even if values in it are wrong."""

from __future__ import annotations

from typing import Any

import pytest

from gpufleet.cli import upgrade_inventory
from gpufleet.core.stopped import Stopped
from gpufleet.kube.operations.access import KubeAccess
from gpufleet.verify.inventory import Target


def of_inventory(monkeypatch: pytest.MonkeyPatch, **data: Any) -> None:
    targets = [Target("@local", ("gpu_cluster",), data)]
    monkeypatch.setattr(upgrade_inventory, "targets_of", lambda inventory, limit: targets)


@pytest.mark.parametrize("key", ["cluster_kubeconfig", "cluster_context"])
@pytest.mark.parametrize("value", [["/k"], {"a": "/k"}, 5])
def test_a_value_of_another_type_is_a_finding(
    key: str, value: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    of_inventory(monkeypatch, **{key: value})
    with pytest.raises(Stopped, match=key):
        upgrade_inventory.accesses_of("prod.py")


def test_the_home_of_nobody_is_a_file_that_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    of_inventory(monkeypatch, cluster_kubeconfig="~nosuchuser/k")
    assert KubeAccess("~nosuchuser/k") in upgrade_inventory.accesses_of("prod.py")


@pytest.mark.parametrize(
    ("clusters", "plane", "wanted"),
    [
        ([{}], {}, [("", "")]),
        ([{"cluster_context": "prod"}], {}, [("", "prod")]),
        ([{"cluster_kubeconfig": "/k"}], {"kubernetes_kubeconfig": "/k"}, [("/k", "")]),
        ([], {"kubernetes_kubeconfig": "/k"}, [("/k", "")]),
        ([], {}, []),
    ],
)
def test_every_cluster_of_an_inventory_is_asked(
    clusters: list[dict[str, Any]],
    plane: dict[str, Any],
    wanted: list[tuple[str, str]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Even one with the user's default kubeconfig: else its nodes would pass for plain hosts."""
    targets = [Target("@local", ("gpu_cluster",), data) for data in clusters]
    targets.append(Target("h", ("control_plane",), plane))
    monkeypatch.setattr(upgrade_inventory, "targets_of", lambda inventory, limit: targets)
    found = upgrade_inventory.accesses_of("prod.py")
    assert [(each.kubeconfig, each.context) for each in found] == wanted
