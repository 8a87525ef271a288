"""The clusters that a run takes from its inventory, even if values in it are wrong."""

from __future__ import annotations

from typing import Any

import pytest

from gpufleet.core.stopped import Stopped
from gpufleet.gpu_stack.operations.accesses import accesses_of
from gpufleet.kube.operations.access import KubeAccess
from gpufleet.verify.inventory import Target


def of_cluster(**data: Any) -> list[KubeAccess]:
    return accesses_of([Target("@local", ("gpu_cluster",), data)])


@pytest.mark.parametrize("key", ["cluster_kubeconfig", "cluster_context"])
@pytest.mark.parametrize("value", [["/k"], {"a": "/k"}, 5])
def test_a_value_of_another_type_is_a_finding(key: str, value: Any) -> None:
    with pytest.raises(Stopped, match=key):
        of_cluster(**{key: value})


def test_the_home_of_nobody_is_a_file_that_is_missing() -> None:
    assert of_cluster(cluster_kubeconfig="~nosuchuser/k") == [KubeAccess("~nosuchuser/k")]


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
) -> None:
    """Even one with the user's default kubeconfig: else its nodes would pass for plain hosts."""
    targets = [Target("@local", ("gpu_cluster",), data) for data in clusters]
    targets.append(Target("h", ("control_plane",), plane))
    found = accesses_of(targets)
    assert [(each.kubeconfig, each.context) for each in found] == wanted
