"""A group that was meant to be gpu_cluster never makes a GPU node of its hosts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gpufleet.core.inventory import misspelt_cluster_group
from gpufleet.core.process import ProgramResult
from gpufleet.verify import inventory

KEYS = ("cluster_kubeconfig", "ssh_user")


@pytest.mark.parametrize("name", ["gpu_clusters", "gpu-cluster", "GPU_Cluster", "gpucluster"])
def test_another_spelling_is_found(name: str) -> None:
    assert misspelt_cluster_group(["@local", name], ()) == name


@pytest.mark.parametrize("name", ["gpu_clsuter", "gpu_cluster_prod", "gpu_custer"])
def test_a_similar_name_is_found_with_keys_of_a_cluster(name: str) -> None:
    assert misspelt_cluster_group(["@local", name], KEYS) == name
    assert misspelt_cluster_group(["@local", name], ()) is None


@pytest.mark.parametrize(
    "groups", [["gpu_nodes", "gpu_clusters"], ["gpu_cluster", "gpu-cluster"], ["workers"], []]
)
def test_other_groups_are_left_alone(groups: list[str]) -> None:
    assert misspelt_cluster_group(groups, KEYS) is None


def test_checks_refuse_it_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    listed = [{"name": "@local", "groups": ["gpu_clusters"], "data": {}}]
    answer = ProgramResult(0, json.dumps(listed))
    monkeypatch.setattr(inventory.Process, "wait", lambda process: answer)
    path = tmp_path / "inventory.py"
    path.touch()
    with pytest.raises(inventory.Stopped, match=r"GF207 .*The group gpu_clusters"):
        inventory.load_targets(str(path))
