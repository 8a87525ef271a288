"""The page of a benchmark with workers."""

from __future__ import annotations

from benchmarks.report import Circumstances
from benchmarks.workers import INVENTORY, Scaled, page


def test_the_page_has_hosts_a_second_and_what_each_costs() -> None:
    about = Circumstances("make bench", "2026-11-25", "2 cores", "Python 3", (0.1, 2.0))
    text = page(about, [Scaled(1000, 2, 40.0, 70.5, 141.2)])
    assert "Written by `make bench` on 2026-11-25." in text
    assert "| 1000 | 2 | 40.0 | 25.0 | 70 | 141 |" in text


def test_each_sandbox_host_has_many_names() -> None:
    text = INVENTORY.format(sandbox="bench-workers", names=3).partition("\n\n")[2]
    found = {"nodes": lambda _: [("x", {"ssh_hostname": "1"}), ("y", {"ssh_hostname": "2"})]}
    exec(text, values := {**found, "group_data": lambda: {"driver_branch": "580"}})
    names, data = values["gpu_nodes"]
    assert [(name, own["ssh_hostname"]) for name, own in names] == [
        ("gpu-0000", "1"), ("gpu-0001", "2"), ("gpu-0002", "1"),
    ]  # fmt: skip
    assert data == {"driver_branch": "580"}
