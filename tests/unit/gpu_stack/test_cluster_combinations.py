"""The plan of a cluster names charts that do not work with its server or with a node's runtime."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from gpufleet.combinations.findings import KNOWN_BAD
from gpufleet.kube.facts import ClusterFacts, ServerVersion
from gpufleet.kube.node_answers import parse_node
from tests.unit.gpu_stack.gpu_clusters import FACTS, LABEL, node, stack

pytestmark = pytest.mark.claim(
    "A cluster's plan warns of known-bad combinations of charts and nodes.", level=1
)

NO_DRIVER = (node("gpu-1", LABEL), node("gpu-2", LABEL))  # the operator installs all of it


def running(*runtimes: str, server: str = "v1.32.4") -> ClusterFacts:
    minor = int(server.split(".")[1])
    pairs = zip(NO_DRIVER, runtimes, strict=False)
    nodes = tuple(replace(each, runtime=runtime) for each, runtime in pairs)
    return replace(FACTS, nodes=nodes, server=ServerVersion(1, minor, server))


def judged(facts: ClusterFacts, **data: Any) -> list[str]:
    plan = stack(facts, cluster_stack="gpu-operator", **data)
    found = [each.message for each in plan.findings if each.code == KNOWN_BAD.code]
    return [name for text in found for name in re.findall(r"\(([a-z]+-[a-z0-9.-]+)\)", text)]


def test_one_node_with_a_newer_runtime_is_enough() -> None:
    old, new = "containerd://1.7.33", "containerd://2.3.2"
    assert judged(running(old, new)) == ["operator-26.3-containerd-2.3"]
    assert judged(running(old, old)) == []
    assert judged(running(new, new, server="v1.36.3")) == []


def test_a_toolkit_that_the_operator_does_not_install_is_not_judged() -> None:
    facts = running("containerd://2.3.2", "containerd://2.3.2")
    assert judged(facts, gpu_operator_values={"toolkit": {"enabled": False}}) == []


def test_a_runtime_that_is_not_known_is_not_judged() -> None:
    assert judged(running("", "")) == []
    assert judged(running("containerd://unknown", "cri-dockerd://0.3")) == []


@pytest.mark.parametrize("server", ["v1.30.2+k3s1", "v1.30.2+rke2r1"])
def test_the_server_names_its_distribution(server: str) -> None:
    asked = {"cluster_chart_versions": {"gpu-operator": "v24.9.0"}}
    facts = running("", server=server)
    assert judged(facts, **asked) == [f"operator-24.9.0-{server[8:].rstrip('r1')}"]
    assert judged(running("", server="v1.30.2"), **asked) == []


def test_the_runtime_is_read_from_the_api() -> None:
    answer = {
        "metadata": {"name": "gpu-1"},
        "status": {"nodeInfo": {"containerRuntimeVersion": "containerd://2.1.5"}},
    }
    assert parse_node(answer).runtime == "containerd://2.1.5"
    assert parse_node({"metadata": {"name": "gpu-1"}}).runtime == ""
