"""GPUs by name, versions by number."""

from __future__ import annotations

import pytest

from gpufleet.core.versions import branch_of, version_tuple
from gpufleet.driver.find import find_distribution, find_gpu
from gpufleet.node.catalog import load_catalog


@pytest.mark.parametrize(
    ("text", "device"),
    [
        ("T4", 0x1EB8),
        ("t4", 0x1EB8),
        ("Tesla T4", 0x1EB8),
        ("nvidia-t4", 0x1EB8),
        ("10de:1eb8", 0x1EB8),
        ("0x1EB8", 0x1EB8),
        ("1eb8", 0x1EB8),
        ("A100", 0x20B0),
        ("a100 pcie 80gb", 0x20B5),
        ("RTX 4000", 0x1EB1),
        ("RTX 4000 Ada", 0x27B0),
        ("H100", 0x2330),
        ("ffff", 0xFFFF),
    ],
)
def test_a_gpu_is_found(text: str, device: int) -> None:
    found = find_gpu(load_catalog(), text)
    assert found.problem == ""
    catalog = load_catalog()
    assert catalog.generation(found.devices[0]) is catalog.generation(device)
    if "a100 pcie" not in text and text not in ("H100", "RTX 4000 Ada"):
        assert found.devices == (device,)


@pytest.mark.parametrize(
    ("text", "hint"),
    [("T5", "T4"), ("V1000", "V100"), ("H101", "H100"), ("GeForce RTX 4091", "RTX 4090")],
)
def test_a_wrong_name_gets_suggestions(text: str, hint: str) -> None:
    found = find_gpu(load_catalog(), text)
    assert found.devices == ()
    assert "Did you mean" in found.problem
    assert hint in found.problem


def test_a_name_of_several_generations_is_refused() -> None:
    found = find_gpu(load_catalog(), "RTX")
    assert found.devices == ()
    assert "several generations" in found.problem


@pytest.mark.parametrize("text", ["!!!", "foo"])
def test_what_is_like_no_name_gets_examples(text: str) -> None:
    found = find_gpu(load_catalog(), text)
    assert found.devices == ()
    assert found.problem.startswith("no GPU is called")
    examples = found.problem.split("include ")[1].split(";")[0].split(", ")
    assert len(examples) >= 5
    assert all(find_gpu(load_catalog(), example).devices for example in examples)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("centos7", "rhel7"),
        ("CentOS 7", "rhel7"),
        ("rocky9", "rhel9"),
        ("almalinux-8", "rhel8"),
        ("Oracle Linux 8", "rhel8"),
        ("centos9", "rhel9"),
        ("Ubuntu 22.04", "ubuntu2204"),
        ("debian12", "debian12"),
        ("plan9", "plan9"),
    ],
)
def test_a_distribution_is_found_by_any_of_its_names(text: str, code: str) -> None:
    assert find_distribution(load_catalog(), text) == code


def test_versions_are_numbers() -> None:
    assert version_tuple("580.159.03") == (580, 159, 3)
    assert version_tuple("580.142") < version_tuple("580.159.03")
    assert version_tuple("1.9.0") < version_tuple("1.20.0")
    assert version_tuple("3.10.0-1160.el7") == (3, 10, 0)
    assert version_tuple("unknown") == ()
    assert version_tuple(f"580.{'9' * 5000}") == (580,)
    assert branch_of("580.142") == 580
