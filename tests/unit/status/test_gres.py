"""Types of GPUs and MIG devices for Slurm, which accepts a part of the type that it finds."""

from __future__ import annotations

import pytest

from gpufleet.facts.gpu import Board, Listed
from gpufleet.status.gres import gres_of_boards

A100 = "NVIDIA A100-SXM4-80GB"


@pytest.mark.parametrize(
    ("name", "devices", "found_by_slurm"),
    [
        (A100, ("3g.40gb", "3g.40gb"), "nvidia_a100_3g.39gb"),
        ("NVIDIA H200", ("1g.18gb",), "nvidia_h200_1g.16gb"),
        ("NVIDIA B200", ("1g.23gb+me",), "nvidia_b200_1g.21gb"),
        ("NVIDIA A100 80GB PCIe", ("1c.3g.40gb",) * 3, "nvidia_a100_80gb_pcie_3g.40gb"),
    ],
)
def test_a_mig_type_is_part_of_what_slurm_finds(
    name: str, devices: tuple[str, ...], found_by_slurm: str
) -> None:
    [(gres_type, count)] = gres_of_boards(Listed(1, "", boards=(Board(name, devices),)))
    assert gres_type in found_by_slurm
    assert gres_type.endswith("g")
    assert count == len(devices)


def test_instances_that_differ_in_memory_only_keep_it() -> None:
    listed = Listed(2, "", boards=(Board(A100, ("1g.20gb", "1g.10gb", "1g.10gb+me")), Board(A100)))
    assert gres_of_boards(listed) == (
        ("nvidia_a100_1g.20gb", 1),
        ("nvidia_a100_1g.10gb", 2),
        ("nvidia_a100-sxm4-80gb", 1),
    )
