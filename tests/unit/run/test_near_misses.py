"""Misspelt keys of pyinfra cause a finding. Other data of the user does not."""

from __future__ import annotations

import pytest

from gpufleet.run.near_misses import groups_meant, misspelt_keys


@pytest.mark.parametrize(
    ("key", "meant"),
    [
        ("ssh_usr", "ssh_user"),
        ("ssh-user", "ssh_user"),
        ("ssh_hostnam", "ssh_hostname"),
        ("sudo", "_sudo"),
        ("_sduo", "_sudo"),
        ("su_user", "_su_user"),
        ("become", "_sudo"),
        ("ansible_host", "ssh_hostname"),
        ("ansible_ssh_private_key_file", "ssh_key"),
    ],
)
def test_a_key_that_was_meant_for_pyinfra(key: str, meant: str) -> None:
    (finding,) = misspelt_keys({key: "hunter2"})
    assert (finding.code, finding.blocks) == ("GF204", False)
    assert f"{key} in the inventory" in finding.message
    (given,) = misspelt_keys({key: "hunter2"}, given=[key])
    assert f"{key} in --data" in given.message
    assert f"Did you mean {meant}?" in finding.remedy
    assert "hunter2" not in str(finding)


@pytest.mark.parametrize(
    "key",
    ["ssh_user", "ssh_key", "_sudo", "_su_user", "_env", "timeout", "env", "rack", "driver_branch",
     "support_contract", "sshd_hardening", "_mine", "user", "ssh_keys"],
)  # fmt: skip
def test_keys_that_are_right_or_of_others(key: str) -> None:
    assert misspelt_keys({key: 1}) == []


def test_a_group_without_hosts_that_was_meant_to_be_another() -> None:
    names = ("gpu-nodes", "GPU_nodes", "gpu_node", "gpu_ndoes")
    found = groups_meant(names, ["gpu_nodes", "all"], ["gpu_nodes", "gpu_training", "all"])
    assert [finding.code for finding in found] == ["GF205"] * 4
    assert all("Did you mean gpu_nodes?" in finding.remedy for finding in found)


def test_a_misspelt_group_of_ones_own_is_a_warning_for_its_hosts_alone() -> None:
    every = ["gpu_training", "rack1", "all"]
    (found,) = groups_meant(["gpu_trainng"], ["gpu_training"], every)
    assert (found.code, found.severity.value) == ("GF205", "warning")
    assert groups_meant(["gpu_trainng"], ["rack1"], every) == []


@pytest.mark.parametrize("name", ["storage", "rack2", "gpu_training_europe"])
def test_data_for_a_group_of_another_inventory_is_an_info(name: str) -> None:
    (found,) = groups_meant([name], ["rack1"], ["gpu_training", "rack1", "all"])
    assert (found.code, found.severity.value) == ("GF205", "info")
