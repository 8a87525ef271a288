"""Outliers: hosts that differ from most hosts with the same GPUs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpufleet.facts.model import Kernel, PciDevice
from gpufleet.status.models import Row
from gpufleet.status.rows import compare_peers
from tests.unit.status.fleets import bare, fleet, healthy, seen, silent

H100 = PciDevice("0000:17:00.0", 0x2330, 0x030200)


def outliers(rows: tuple[Row, ...]) -> dict[str, list[str]]:
    return {
        row.name: [note.finding.message for note in row.notes if note.flag == "outlier"]
        for row in rows
        if "outlier" in row.flags
    }


def test_another_driver_and_another_kernel_stand_out() -> None:
    facts = healthy()
    other = replace(healthy("580.173.02"), kernel=Kernel("5.15.0-99-generic", "x86_64", True))
    found = fleet(*(seen(f"gpu-{n}", facts) for n in (1, 2, 3)), seen("gpu-4", other))
    assert outliers(found.rows) == {
        "gpu-4": [
            "The driver is 580.173.02; on 3 of 4 hosts with A100 SXM4 80GB it is 580.178.04.",
            "The kernel is 5.15.0-99-generic; on 3 of 4 hosts with A100 SXM4 80GB it is "
            "5.15.0-122-generic.",
        ]
    }


def test_fewer_gpus_stand_out() -> None:
    one = bare()
    two = replace(one, pci=(*one.pci, replace(one.pci[0], slot="0000:65:00.0")))
    found = fleet(*(seen(f"gpu-{n}", two) for n in (1, 2)), seen("gpu-3", one))
    (messages,) = outliers(found.rows).values()
    assert messages == ["The number of GPUs is 1; on 2 of 3 hosts with A100 SXM4 80GB it is 2."]


@pytest.mark.parametrize("drivers", [["580.1", "580.2"], ["580.1", "580.1", "580.2", "580.2"],
                                     ["580.1", "580.2", "580.3"]])  # fmt: skip
def test_without_a_majority_nobody_stands_out(drivers: list[str]) -> None:
    rows = [Row(f"gpu-{n}", models=(("A100", 8),), driver=name) for n, name in enumerate(drivers)]
    assert outliers(compare_peers(rows)) == {}


def test_only_the_same_gpus_are_compared_and_only_hosts_that_answered() -> None:
    facts = healthy()
    other = replace(bare(), pci=(H100,))
    found = fleet(*(seen(f"gpu-{n}", facts) for n in (1, 2, 3)), seen("gpu-4", other), silent("x"))
    assert outliers(found.rows) == {}


def test_kernels_are_compared_within_a_distribution() -> None:
    def row(name: str, system: str, kernel: str) -> Row:
        return Row(name, models=(("A100", 8),), os=system, kernel=kernel)

    ubuntu = [row(f"u{n}", "ubuntu2204", "5.15") for n in range(4)]
    found = outliers(compare_peers([*ubuntu, row("d", "debian12", "6.1")]))
    assert list(found) == ["d"]
    assert ["The distribution is debian12" in text for text in found["d"]] == [True]
