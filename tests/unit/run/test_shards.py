"""Parts of a run: how hosts are cut, what becomes of a part, when no further one begins."""

from __future__ import annotations

from dataclasses import fields, replace
from datetime import datetime, timezone
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpufleet.core.exit_status import ExitStatus
from gpufleet.core.node_roles import NODE_ROLES
from gpufleet.core.runtime_state import RuntimeState
from gpufleet.driver.findings import host as findings
from gpufleet.run.report import BAD, HostReport, RunFacts, Status, as_json, in_schema
from gpufleet.run.shards import (
    LARGEST,
    Outcome,
    Shard,
    Whole,
    Working,
    beat,
    cut,
    failed_of,
    in_order,
    last_line,
    lines,
    not_begun,
    over_budget,
    result_of,
)

NOW = datetime(2026, 11, 25, tzinfo=timezone.utc)
FACTS = RunFacts("inv.py", ("gpu_node.py",), NOW, NOW, dry=False, exit_status=0, completed=True)


@pytest.mark.parametrize("workers", [1, 2, 3, 7])
@pytest.mark.parametrize("number", [0, 1, 2, 40, 99, 100, 101, 5000])
def test_every_host_is_in_one_shard_and_shards_are_alike(number: int, workers: int) -> None:
    names = [f"gpu-{place}" for place in range(number)]
    shards = cut(names, workers)
    assert [name for shard in shards for name in shard.hosts] == names
    sizes = {len(shard.hosts) for shard in shards}
    assert not sizes or max(sizes) - min(sizes) <= 1
    assert max(sizes, default=0) <= LARGEST
    assert len(shards) % workers == 0 or len(shards) == number
    assert [shard.number for shard in shards] == list(range(1, len(shards) + 1))


LINE = st.text().filter(str.isprintable)
VERSION = st.none() | st.text(max_size=5).filter(str.isprintable)
MOVEMENT = st.fixed_dictionaries({"before": VERSION, "after": VERSION})
ROLES = sorted({*NODE_ROLES, *in_schema(), "one-of-a-plugin"})
PLANS = st.fixed_dictionaries(
    {"steps": st.lists(LINE)}, optional={"driver": st.just({"action": "install"})}
)
# of every field of a host: a new one needs a line here
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "name": st.just("a"),
    "kind": st.sampled_from(["node", "cluster"]),
    "status": st.sampled_from(get_args(Status)),
    "changed": st.integers(1, 10**6),  # see below
    "failed": st.just(False),  # see below
    "roles": st.dictionaries(st.sampled_from(ROLES), MOVEMENT).map(
        lambda found: {key: {} for key in NODE_ROLES} | found
    ),
    "runtimes": st.dictionaries(LINE, st.sampled_from(get_args(RuntimeState))),
    "releases": st.dictionaries(LINE, MOVEMENT),
    "needs": st.lists(LINE),
    "findings": st.lists(st.just(findings.MODULE_BUSY())),
    "errors": st.lists(LINE),
    "plan": PLANS,
    "seconds": st.integers(0, 9999).map(float),
    "examined": st.just(True),
    "leaves": st.booleans(),
    "seen": st.just({}),  # of a run that goes on
}
HOSTS = st.fixed_dictionaries({each.name: VALUES[each.name] for each in fields(HostReport)}).map(
    lambda values: HostReport(**values)
)


@given(HOSTS)
def test_a_host_is_read_back_as_it_was_reported(host: HostReport) -> None:
    host.failed = host.status in BAD
    host.changed *= host.status != "converged"
    host.findings = host.findings if host.failed or host.errors else []
    dry = host.status == "planned"
    text = as_json([host], replace(FACTS, dry=dry))
    assert result_of(Shard(1, ("a",)), Outcome(text), dry=dry).hosts == [host]


def test_a_host_that_no_worker_reported_is_not_reached() -> None:
    shard = Shard(1, ("a", "b"))
    text = as_json([HostReport("a", status="converged", examined=True)], FACTS)
    found = result_of(shard, Outcome(text), dry=False).hosts
    assert [(part.status, part.failed) for part in found] == [
        ("converged", False), ("not reached", True),
    ]  # fmt: skip
    assert found[1].findings[0].code == "GF015"
    for outcome, why in (
        (Outcome(status=-9, output="Connecting\x1b[2J"), "status -9"),
        (Outcome(problem="it has no folder /srv"), "no folder /srv"),
        (Outcome("[]"), "not valid"),
        (Outcome("{"), "not valid: Invalid JSON"),
        (Outcome("[" * 9999), "not valid"),
        (Outcome("\udc80"), "not valid"),
        (Outcome('{"hosts": {"a": {}}}'), "schema: Field required"),
    ):
        lost = result_of(shard, outcome, dry=False).hosts
        assert {part.status for part in lost} == {"not reached"}
        finding = lost[0].findings[0]
        assert "--limit a" in finding.remedy
        assert finding.code == "GF013"
        assert why in finding.message
        assert "\x1b" not in finding.message
    assert [part.findings[0].code for part in not_begun(shard.hosts)] == ["GF006", "GF006"]


def test_hosts_are_in_the_order_of_the_inventory() -> None:
    parts = {name: HostReport(name) for name in ("b", "a")}
    assert [part.name for part in in_order(parts, ("a", "x", "b"))] == ["a", "b"]


def test_the_budget_counts_over_all_hosts() -> None:
    parts = [HostReport("a", status="failed"), HostReport("b", status="not reached")]
    assert failed_of([*parts, HostReport("c", status="converged")]) == 2
    assert not over_budget(2, 20, None)
    assert not over_budget(2, 20, 10)  # 2 of 20 are 10 %
    assert over_budget(2, 19, 10)
    assert over_budget(2, 20, 0)


@pytest.mark.parametrize(
    ("outcome", "status"),
    [
        (Outcome(status=2), ExitStatus.USAGE),
        (Outcome(status=4), ExitStatus.NOTHING),
        (Outcome("{}", status=2), None),
        (Outcome(status=1), None),
        (Outcome(status=-2), None),
    ],
)
def test_a_part_that_was_called_in_a_wrong_way(outcome: Outcome, status: ExitStatus | None) -> None:
    assert outcome.refused is status


def test_the_last_line_is_short() -> None:
    assert last_line("a\n b \n\n") == "b"
    assert last_line("") == ""
    assert len(last_line("x" * 9999)) == 300


def test_what_is_shown_fits() -> None:
    working = tuple(Working(f"gpu-[{n}-{n + 9}]", float(n), "Running\x1b[2J" * 9) for n in range(9))
    whole = Whole(72.0, 90, 2, working, 10, 3)
    shown = lines(whole, 60, 6)
    assert len(shown) == 4
    assert all(len(line) <= 60 and "\x1b" not in line for line in shown)
    assert shown[1].startswith("  gpu-[8-17], 8 s: Running")
    assert beat(whole).startswith(
        "Running on 90 hosts with 2 workers, 72 s: 10 done, 3 failed; gpu-[8-17], 8 s: Running"
    )
    assert beat(Whole(1.0, 1, 1, (), 0, 0)) == "Running on 1 host with 1 worker, 1 s: 0 done"


@pytest.mark.parametrize(
    ("hosts", "label"),
    [
        (("gpu-1",), "gpu-1"),
        (("a", "b"), "a, b"),
        (("a", "b", "c"), "a, b, …"),
        (("gpu-1", "gpu-2", "gpu-3"), "gpu-[1-3]"),
    ],
)
def test_a_part_is_named_by_its_first_hosts(hosts: tuple[str, ...], label: str) -> None:
    assert Shard(1, hosts).label == label
