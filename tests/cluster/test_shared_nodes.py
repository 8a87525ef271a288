"""Sharing of GPUs by node on a real API server: labels are applied, change, and go again."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cluster.stacking import Bench

LABEL = "nvidia.com/device-plugin.config"
SLICED = {"gpu_sharing": "time-slicing", "gpu_replicas": 4}
GPUS = 8  # of each simulated node
NO_MONITORING: dict[str, Any] = {"monitoring_enabled": False}


def labels(bench: Bench) -> dict[str, str]:
    """Node -> its configuration of the device plugin, if it has one."""
    nodes = bench.core.list_node().items
    found = {node.metadata.name: (node.metadata.labels or {}).get(LABEL) for node in nodes}
    return {name: config for name, config in found.items() if config}


def gpu_nodes(bench: Bench) -> list[str]:
    nodes = bench.core.list_node().items
    return [node.metadata.name for node in nodes if "nvidia.com/gpu" in node.status.capacity]


@pytest.mark.extended
@pytest.mark.claim(
    "Nodes get the label of their configuration of the device plugin, and lose it with the keys; "
    "a label of another user stays.",
    level=5,
)
def test_labels_follow_the_keys_of_nodes(current: Bench) -> None:
    first, second = gpu_nodes(current)[:2]
    current.nodes = {first: SLICED, second: SLICED}
    preview = current.deploy(deploy="preflight", **NO_MONITORING)
    said = " ".join(preview.output.split())  # without line breaks
    assert f"by time-slicing-4 (nvidia.com/gpu {GPUS} -> {4 * GPUS})" in said
    assert labels(current) == {}
    done = current.deploy(**NO_MONITORING)
    assert done.returncode == 0, done.output
    assert labels(current) == {first: "time-slicing-4", second: "time-slicing-4"}
    again = current.deploy(**NO_MONITORING)
    assert again.report["changed"] == 0, again.output

    theirs = {"metadata": {"labels": {LABEL: "mine"}}}
    current.core.patch_node(second, theirs)
    current.nodes = {first: {**SLICED, "gpu_replicas": 2}, second: SLICED}
    moved = current.deploy(**NO_MONITORING)
    assert (moved.returncode, "GF974" in moved.codes) == (0, True), moved.output
    assert labels(current) == {first: "time-slicing-2", second: "mine"}

    current.nodes = {first: {}}
    assert current.deploy(**NO_MONITORING).returncode == 0
    assert labels(current) == {second: "mine"}


@pytest.mark.extended
def test_a_removal_takes_the_labels_away(current: Bench) -> None:
    node = gpu_nodes(current)[0]
    current.nodes = {node: SLICED}
    assert current.deploy(**NO_MONITORING).returncode == 0
    assert labels(current) == {node: "time-slicing-4"}
    done = current.deploy(deploy="remove", **NO_MONITORING)
    assert done.returncode == 0, done.output
    assert labels(current) == {}
