"""ClusterFacts from captures of real control planes, with golden results, and invalid responses.

The captures were made on the control planes of `gpufleet sandbox cluster up` with the stack of
deploys/gpu_cluster.py and special cases: a killed release, a failed one, a pod without a
controller, a restricted namespace. To accept changed results:
GPUFLEET_UPDATE_GOLDEN=1 pytest tests/unit/kube/test_cluster_facts.py
"""

from __future__ import annotations

import dataclasses
import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpufleet.helm.readiness import find_unready
from gpufleet.helm.release import ChartSource, Release
from gpufleet.kube.answers import cluster_facts
from gpufleet.kube.facts import (
    ClusterFacts,
    HelmRelease,
    ObjectRef,
    ReleaseRef,
    Revision,
    ServerVersion,
    Workload,
)
from gpufleet.kube.helm_releases import objects_in
from gpufleet.kube.node_answers import DRA_LABEL, gpu_pods_by_node, parse_node
from gpufleet.kube.objects import POD_SECURITY_LABEL
from gpufleet.kube.parse import parse_version, parse_workload

CAPTURES = sorted((Path(__file__).parent / "captures").glob("cluster-*.answers.json"))
BY_NAME = {path.name.removesuffix(".answers.json"): path for path in CAPTURES}


def answers(name: str) -> dict[str, Any]:
    return dict(json.loads(BY_NAME[name].read_text()))


def facts(name: str) -> ClusterFacts:
    return cluster_facts("sandbox", answers(name))


def plain(value: Any) -> Any:
    if isinstance(value, frozenset):
        return sorted(value)
    if isinstance(value, dict):
        return {key: plain(value[key]) for key in sorted(value)}
    return [plain(item) for item in value] if isinstance(value, list | tuple) else value


@pytest.mark.parametrize("name", BY_NAME)
def test_golden(name: str) -> None:
    found = plain(dataclasses.asdict(facts(name)))
    golden = BY_NAME[name].with_name(f"{name}.facts.json")
    if os.environ.get("GPUFLEET_UPDATE_GOLDEN"):
        golden.write_text(json.dumps(found, indent=1) + "\n")
    assert found == json.loads(golden.read_text())


@pytest.mark.parametrize("name", BY_NAME)
def test_known_contents_of_the_captures(name: str) -> None:
    known = facts(name)
    assert f"cluster-{known.server.full.removeprefix('v')}" == name
    first, second = known.nodes
    assert ("nvidia.com/gpu", "NoSchedule") in {(t.key, t.effect) for t in second.taints}
    assert first.capacity == first.allocatable == {"nvidia.com/gpu": 8}
    monitors = known.crds["servicemonitors.monitoring.coreos.com"]
    assert (monitors.kind, monitors.versions) == ("ServiceMonitor", ("v1",))
    assert known.serves("prometheuses.monitoring.coreos.com")
    assert known.serves_api("apps/v1")
    assert not known.serves_api("apps/v1beta2")
    assert [p.service for p in known.node_ports if p.port == 30090]
    assert len(known.prometheuses) == 1
    assert known.prometheuses[0].spec["serviceMonitorSelector"] == {}
    assert known.namespaces["strict"].labels[POD_SECURITY_LABEL] == "baseline"


@pytest.mark.parametrize("name", BY_NAME)
def test_releases_of_the_captures(name: str) -> None:
    known = facts(name)
    by_hand = known.release("byhand", "byhand")
    assert by_hand
    assert by_hand.history == (Revision(1, "superseded"), Revision(2, "deployed"))
    assert by_hand.values == {"deployment": {"replicas": 2}}
    assert by_hand.workloads == (ObjectRef("Deployment", "byhand", "byhand"),)
    assert by_hand.labels == {}
    stuck, broken = known.release("byhand", "stuck"), known.release("byhand", "broken")
    assert stuck
    assert broken
    assert (stuck.status, stuck.pending, stuck.last_good) == ("pending-install", True, None)
    assert (broken.status, broken.pending, broken.last_good) == ("failed", False, None)
    ours = known.release("monitoring", "dcgm-exporter")
    assert ours
    assert "gpufleet" in ours.labels
    assert ours.created > 1_700_000_000


@pytest.mark.parametrize("name", BY_NAME)
def test_workloads_of_the_captures(name: str) -> None:
    known = facts(name)
    exporters = [work for work in known.workloads if "dcgm-exporter" in work.image_names]
    assert {(work.kind, work.name) for work in exporters} == {
        ("DaemonSet", "dcgm-exporter"), ("Pod", "alone"),
    }  # fmt: skip
    (lone,) = [work for work in known.workloads if 9401 in work.host_ports]
    assert (lone.host_network, lone.release) == (True, None)
    plugin = known.workloads_of(ReleaseRef("kube-system", "nvidia-device-plugin"))
    assert all(map(available, plugin))


def test_repr_of_facts_omits_secrets() -> None:
    assert "not-shown" not in repr(facts("cluster-1.36.3"))


@pytest.mark.parametrize(("minor", "expected"), [("36", 36), ("29+", 29), ("18", 18)], ids=str)
def test_versions_of_vendors(minor: str, expected: int) -> None:
    version = parse_version({"major": "1", "minor": minor, "gitVersion": "v1.29.4-eks-036c24b"})
    assert version == ServerVersion(1, expected)
    assert version > ServerVersion(1, 9)


@pytest.mark.parametrize(("text", "number"), [("8", 8), ("2k", 2000), ("bad", 0)])
def test_quantities_of_extended_resources(text: str, number: int) -> None:
    resources = {"cpu": "4", "nvidia.com/gpu": text, "hugepages-2Mi": "0"}
    node = parse_node({"metadata": {"name": "n"}, "status": {"capacity": resources}})
    assert node.capacity == {"nvidia.com/gpu": number}


def test_handlers_of_a_node_and_of_classes() -> None:
    """The handler of the default runtime has no name."""
    listed = {"runtimeHandlers": [{"features": {}}, {"name": "runc"}, {"name": "nvidia"}]}
    node = parse_node({"metadata": {"name": "n"}, "status": listed})
    assert node.handlers == ("", "runc", "nvidia")
    answers = json.loads(CAPTURES[-1].read_text("utf-8"))
    classes = [{"metadata": {"name": "nvidia"}, "handler": "nvidia-cdi"}]
    facts = cluster_facts("test", {**answers, "runtime_classes": classes})
    assert facts.runtime_classes == {"nvidia": "nvidia-cdi"}


def available(work: Workload) -> bool:
    """Whether a release of this workload has nothing to wait for."""
    work = replace(work, release=ReleaseRef("n", "r"))
    record = HelmRelease("r", "n", 1, "deployed", "c", "1", "", {}, workloads=(work.ref,))
    there = ClusterFacts("test", ServerVersion(1, 36), workloads=(work,), releases=(record,))
    return not find_unready(Release("r", "n", "c", "1", ChartSource("repository", "")), there)


def deployment(**status: int) -> Workload:
    return parse_workload(
        "Deployment",
        {
            "metadata": {"name": "d", "namespace": "n", "generation": 2},
            "spec": {"replicas": 1, "template": {"spec": {"containers": []}}},
            "status": {"observedGeneration": 2, **status},
        },
    )


def test_a_claim_counts_as_gpus_on_nodes_of_the_dra_driver_alone() -> None:
    """Pods claim network cards, too."""
    nodes = [
        {"metadata": {"name": "gpu-1", "labels": {DRA_LABEL: "true"}}},
        {"metadata": {"name": "cpu-1", "labels": {}}},
    ]
    pods = [
        {
            "metadata": {"namespace": "team", "name": f"on-{name}"},
            "spec": {"nodeName": name, "resourceClaims": [{"name": "x"}]},
        }
        for name in ("gpu-1", "cpu-1")
    ]
    assert gpu_pods_by_node(pods, nodes) == {"gpu-1": ("team/on-gpu-1",)}


def test_labels_are_ours_only_as_long_as_nobody_else_sets_them() -> None:
    """As the API server answers; a label moves to the entry of the user who changes it."""

    def entry(manager: str, operation: str, label: str) -> dict[str, Any]:
        fields = {"f:metadata": {"f:labels": {".": {}, f"f:{label}": {}}}}
        return {"manager": manager, "operation": operation, "fieldsV1": fields}

    def own(*entries: dict[str, Any]) -> tuple[str, ...]:
        return parse_node({"metadata": {"name": "n", "managedFields": [*entries]}}).own_labels

    ours = entry("gpufleet-labels", "Apply", "example.com/a")
    theirs = entry("kubectl-label", "Update", "example.com/b")
    assert own(ours, theirs) == ("example.com/a",)
    assert own(theirs) == own() == own({"manager": "gpufleet-labels", "operation": "Apply"}) == ()


def test_an_old_pod_does_not_make_a_new_version_ready() -> None:
    """Right after an upgrade the old pod counts as available and the new one as updated."""
    rolling = deployment(replicas=2, updatedReplicas=1, availableReplicas=1)
    assert not available(rolling)
    assert available(deployment(replicas=1, updatedReplicas=1, availableReplicas=1))
    assert not available(
        deployment(replicas=1, updatedReplicas=1, availableReplicas=1, observedGeneration=1)
    )


def test_a_daemonset_with_on_delete_is_not_waited_for() -> None:
    daemon = parse_workload(
        "DaemonSet",
        {
            "metadata": {"name": "d", "namespace": "n"},
            "spec": {"template": {"spec": {}}, "updateStrategy": {"type": "OnDelete"}},
            "status": {"desiredNumberScheduled": 3, "numberAvailable": 3},
        },
    )
    assert available(daemon)


@given(st.text(), st.text())
def test_any_manifest_is_read_for_its_workloads(before: str, after: str) -> None:
    document = "kind: DaemonSet\nmetadata:\n  name: d\n"
    around = [part.replace("kind:", "").replace("-", "") for part in (before, after)]
    manifest = f"# {around[0]!a}\n---\n{document}---\n# {around[1]!a}\n"
    assert objects_in(manifest, "n") == ((ObjectRef("DaemonSet", "n", "d"),), (), ())


def claim(name: str, policy: str | None = None) -> str:
    about = f'\n  annotations: {{helm.sh/resource-policy: "{policy}"}}' if policy else ""
    return f"---\nkind: PersistentVolumeClaim\nmetadata:\n  name: {name}{about}\n"


def test_claims_that_helm_would_delete_are_read_from_a_manifest() -> None:
    manifest = claim("data") + claim("kept", " Keep ") + claim("other", "delete")
    workloads, claims, _ = objects_in(manifest, "n")
    assert workloads == ()
    assert [str(ref) for ref in claims] == [
        "PersistentVolumeClaim n/data",
        "PersistentVolumeClaim n/other",
    ]


def test_the_group_of_a_custom_resource() -> None:
    crds = facts("cluster-1.36.3").crds
    assert crds["servicemonitors.monitoring.coreos.com"].group == "monitoring.coreos.com"
