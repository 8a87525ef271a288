"""Which workloads an upgrade must recreate."""

from __future__ import annotations

from typing import Any

from gpufleet.helm.plan import recreated_workloads
from gpufleet.helm.release import ChartSource, Release, ReleasePlan
from gpufleet.kube.facts import (
    ClusterFacts,
    HelmRelease,
    Placement,
    ReleaseRef,
    ServerVersion,
    Workload,
)

RELEASE = Release("one", "space", "chart", "2.0.0", ChartSource("archive", "x"))
PLAN = ReleasePlan(RELEASE, "upgrade", "", None)


def work(name: str, selector: dict[str, str], release: str = "one") -> Workload:
    return Workload(
        kind="DaemonSet",
        namespace="space",
        name=name,
        images=(),
        host_ports=(),
        host_network=False,
        wanted=1,
        ready=1,
        updated=1,
        old=0,
        settled=True,
        selector=selector,
        placement=Placement(),
        release=ReleaseRef("space", release),
    )


def rendered(name: str, selector: dict[str, str], kind: str = "DaemonSet") -> dict[str, Any]:
    return {
        "kind": kind,
        "metadata": {"name": name},
        "spec": {"selector": {"matchLabels": selector}},
    }


def recreated_by(works: list[Workload], objects: list[dict[str, Any]]) -> list[str]:
    manifest = tuple(found.ref for found in works)
    record = HelmRelease(
        "one", "space", 1, "deployed", "chart", "1.0.0", "1", {}, workloads=manifest
    )
    facts = ClusterFacts("test", ServerVersion(1, 36), workloads=tuple(works), releases=(record,))
    return [found.name for found in recreated_workloads(PLAN, objects, facts)]


def test_only_a_selector_that_changes_matters() -> None:
    works = [work("same", {"a": "1"}), work("moved", {"a": "1"}), work("gone", {"a": "1"})]
    objects = [rendered("same", {"a": "1"}), rendered("moved", {"a": "1", "b": "2"})]
    assert recreated_by(works, objects) == ["moved"]


def test_only_workloads_of_the_release_and_kind_are_recreated() -> None:
    assert recreated_by([work("theirs", {"a": "1"}, "two")], [rendered("theirs", {"b": "2"})]) == []
    assert recreated_by([work("x", {"a": "1"})], [rendered("x", {"b": "2"}, "Deployment")]) == []
