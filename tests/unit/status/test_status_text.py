"""The table of a fleet: equal hosts share a line, 80 columns suffice, nothing is markup."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.console import Console

from gpufleet.status.groups import PROPERTIES, by_property, has_property
from gpufleet.status.models import FleetStatus
from gpufleet.status.text import show_groups, show_status, topic_table
from tests.unit.status.fleets import bare, fleet, healthy, hostile, seen, silent

pytestmark = pytest.mark.claim(
    "The table of `status` fits 80 columns, and shows no control characters of a host.",
    level=1,
)


def shown(found: FleetStatus, width: int = 80) -> str:
    out = io.StringIO()
    show_status(Console(file=out, width=width), found)
    return out.getvalue()


def test_a_table_of_topics_has_no_header() -> None:
    out = io.StringIO()
    Console(file=out, width=80).print(topic_table([("has", ["a", "b"]), ("lacks", [])], "none"))
    assert [line.split() for line in out.getvalue().splitlines()] == [
        ["has", "a"],
        ["b"],
        ["lacks", "none"],
    ]


def many() -> FleetStatus:
    facts = healthy()
    hosts = [seen(f"gpu-{n:02}", facts, driver_enabled=False) for n in range(1, 41)]
    return fleet(*hosts, seen("gpu-41", bare()), silent("gpu-42"), clusters=("lab",))


def test_equal_hosts_share_a_line_and_a_finding_names_its_hosts() -> None:
    text = shown(many(), 200)
    assert "40 hosts: gpu-[01-40]" in text
    assert text.count("1 x A100 SXM4 80GB") == 2, "one line for 40 hosts, and one for the other"
    assert "GF005 blocker gpu-42: Connection failed: timed out" in text
    counts = "1 unreachable, 1 drift, 1 outlier, 40 without a flag"
    assert f"42 hosts, 41 GPUs on the 41 that answered: {counts}\n" in text
    assert "1 cluster: 1 without a flag" in text


@pytest.mark.parametrize("width", [40, 80, 120, 139, 140, 200])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    for found in (many(), hostile()):
        text = shown(found, width)
        assert max(map(len, text.splitlines())) <= width


def test_80_columns_have_every_value_whole() -> None:
    text = shown(many())
    for value in ("gpu-[01-40]", "1 x A100 SXM4 80GB", "580.178.04", "5.15.0-122-generic",
                  "ubuntu2204", "unreachable"):  # fmt: skip
        assert value in text


def test_in_a_pipe_there_are_no_control_characters_and_nothing_is_markup() -> None:
    text = shown(hostile(), 400)
    assert not any(not letter.isprintable() and letter != "\n" for letter in text)
    assert r"\x1b[2J" in text
    assert "[bold]" in text
    assert r"\r\n" in text


def test_a_group_has_a_line_for_each_value() -> None:
    out = io.StringIO()
    show_groups(Console(file=out, width=80), many(), "driver")
    lines = [line.split() for line in out.getvalue().splitlines()]
    assert lines[0] == ["DRIVER", "HOSTS", "GPUS", "FLAGS", "NAMES"]
    assert lines[1] == ["580.178.04", "40", "40", "-", "gpu-[01-40]"]
    assert lines[2][:5] == ["-", "2", "1", "1", "unreachable"]


@pytest.mark.parametrize("name", PROPERTIES)
def test_groups_have_every_host_once_the_largest_first(name: str) -> None:
    found = many()
    groups = by_property(found, name)
    assert sorted(host for group in groups for host in group.names) == sorted(
        row.name for row in found.rows
    )
    sizes = [len(group.rows) for group in groups]
    assert sizes == sorted(sizes, reverse=True)


def labels(found: FleetStatus, by: str) -> dict[str, tuple[str, ...]]:
    return {group.value: group.names for group in by_property(found, by)}


def test_hosts_are_grouped_by_a_data_key_that_unreachable_hosts_have_too() -> None:
    racks = {"a": "r1", "b": "r2", "c": "r1"}
    hosts = [seen("a", healthy()), seen("b", healthy()), silent("c"), seen("d", healthy())]
    found = fleet(
        *(replace(host, data={"rack": racks[host.name]} if host.name in racks else {})
          for host in hosts)
    )  # fmt: skip
    assert labels(found, "rack") == {"r1": ("a", "c"), "r2": ("b",), "": ("d",)}
    assert [has_property(found, name) for name in ("rack", "colour", "os")] == [True, False, True]


def test_groups_that_every_host_has_are_left_out_of_the_labels() -> None:
    groups = {"a": ("gpu_nodes", "rack_a"), "b": ("gpu_nodes", "rack_b"), "c": ("gpu_nodes",)}
    found = fleet(*(replace(seen(name, healthy()), groups=own) for name, own in groups.items()))
    assert list(labels(found, "group")) == ["rack_a", "rack_b", "gpu_nodes"]


def test_one_of_a_thing_is_singular() -> None:
    text = shown(fleet(seen("gpu-01", healthy(), driver_enabled=False)))
    assert "1 host, 1 GPU: 1 without a flag\n" in text
