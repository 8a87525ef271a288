"""Hosts and their control plane agree on the cluster, its settings and its version."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gpufleet.kubernetes.notes import (
    KUBERNETES_BEGUN_PATH,
)
from gpufleet.kubernetes.role import ROLE
from gpufleet.node.settings import load_node_settings
from tests.unit.hosts import record_of
from tests.unit.kubernetes.cluster_hosts import (
    DONE,
    PLANE,
    ROOM,
    WORKER,
    beside,
    codes,
    host,
    joined,
    node_of,
    plan_of,
)


@pytest.mark.parametrize(
    ("plane", "data", "key"),
    [
        ({"kubelet": {"failSwapOn": False}}, {}, "kubernetes_kubelet"),
        ({}, {"version": "1.35"}, "kubernetes_version"),
        ({"pod_subnet": "10.8.0.0/16"}, {}, "kubernetes_pod_subnet"),
        ({"enabled": False}, {}, "kubernetes_enabled"),
        ({"labels": {"a": "b"}, "hold": False}, {}, ""),
    ],
    ids=str,
)
def test_settings_of_the_cluster_are_those_of_its_control_plane(
    plane: dict[str, Any], data: dict[str, Any], key: str
) -> None:
    node = node_of(host(), beside(**plane), **data)
    assert codes(node) == (["GF960"] if key else [])
    if key:
        assert key in node.parts[-1].findings[0].message


def test_a_worker_needs_its_control_plane_in_the_run() -> None:
    alone = replace(WORKER, absent=frozenset({"cp-01"}))
    assert codes(node_of(host(), alone)) == ["GF944"]
    assert codes(node_of(joined(), alone)) == []


def test_a_node_does_not_change_sides() -> None:
    record = record_of(kubernetes={"part": "worker", "version": "1.36.3"})
    assert codes(node_of(joined(provenance=record), PLANE)) == ["GF962"]
    assert codes(node_of(joined(provenance=record), WORKER)) == []


@pytest.mark.claim("A worker of another cluster is refused.", level=1)
@pytest.mark.parametrize(("own", "cluster", "found"), [
    ({"a"}, {"a"}, []),
    ({"a", "new"}, {"old", "a"}, []),
    ({"a"}, {"b"}, ["GF290"]),
    ({"a"}, None, ["GF290"]),  # its control plane was reset, or is another one
    ({"a"}, set(), []),
    (set(), {"b"}, []),
])  # fmt: skip
def test_a_worker_of_another_cluster_is_none_of_this_one(
    own: set[str], cluster: set[str] | None, found: list[str]
) -> None:
    """`cluster`: the authorities of the control plane, or None if it has no cluster."""
    node = replace(ROOM, paths=DONE, authorities=frozenset(own))
    plane = replace(ROOM, paths=DONE if cluster is not None else frozenset({KUBERNETES_BEGUN_PATH}))
    plane = replace(plane, name="cp-01", authorities=frozenset(cluster or ()))
    settings, _ = load_node_settings({"kubernetes_enabled": True})
    assert settings is not None
    hosts = host(cluster_host=node), host(cluster_host=plane)
    assert [each.code for each in ROLE.beside(None, settings.of(ROLE), *hosts)] == found
    settings, _ = load_node_settings({})
    assert settings is not None
    assert not list(ROLE.beside(None, settings.of(ROLE), *hosts))
    bare = host(cluster_host=replace(node, paths=frozenset()))
    assert not list(ROLE.beside(None, settings.of(ROLE), bare, hosts[1]))


@pytest.mark.parametrize(("plane", "version", "found"), [
    ("1.36.3", None, []),
    ("1.35.1", None, ["GF961"]),  # the catalog is newer than the cluster
    ("1.35.1", "1.36", ["GF961"]),
    ("1.35.1", "1.35", []),
    ("1.36.3", "1.35", []),
])  # fmt: skip
def test_a_host_does_not_get_a_newer_minor_than_its_control_plane(
    plane: str, version: str | None, found: list[str]
) -> None:
    settings, _ = load_node_settings({"kubernetes_enabled": True})
    assert settings is not None
    plan, own = plan_of(host(), version=version), settings.of(ROLE)
    assert [each.code for each in ROLE.beside(plan, own, host(), joined(plane))] == found
    assert not list(ROLE.beside(plan, own, host(), host()))
