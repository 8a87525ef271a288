"""The metrics of a run in a file, and its events on nodes."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from gpufleet.cli.upgrade import upgrade
from gpufleet.core.metrics import write_metrics
from gpufleet.host.upgrade_state import OPEN, Phase
from gpufleet.kube.findings import API_UNREACHABLE, LEASE_LOST
from gpufleet.kube.operations.access import ClusterProblem
from gpufleet.kube.operations.refused import ApiError
from gpufleet.upgrade.operations.metrics import UPGRADE_METRICS_PREFIX, upgrade_metrics_text
from gpufleet.upgrade.show import REASONS, event_of
from tests.fakes.upgrade_fleet import World, fleet_of, moved

OURS = upgrade_metrics_text(World(fleet_of("h")).planned(), {}, "i", running=True)
LINE = re.compile(r'gpufleet_upgrade_(\w+)\{((?:\w+="(?:[^"\\\n]|\\[\\"n])*",?)*)\} ([0-9.e+]+)')


def samples(text: str) -> dict[tuple[str, str], float]:
    """(metric, state) -> value; every line is a comment or a sample."""
    found = {}
    for line in text.splitlines():
        sample = LINE.fullmatch(line)
        assert sample or line.startswith(("# HELP gpufleet", "# TYPE gpufleet")), line
        if sample:
            state = re.search(r'state="([^"]*)"', sample[2])
            found[sample[1], state[1] if state else ""] = float(sample[3])
    return found


def test_metrics_of_a_run() -> None:
    world = World(fleet_of("h"))
    run = world.started()
    moved(world.machines["h"], phase=Phase.RESTORING, out=True, since=1.0)
    states = {"h": world.machines["h"].state}
    text = upgrade_metrics_text(run.plan, states, 'a "b"\\\n.py', running=True)  # type: ignore[arg-type]
    found = samples(text)
    assert found["hosts", "restoring"] == 1
    assert sum(value for (name, _), value in found.items() if name == "hosts") == 1
    assert found["out_of_service", ""] == found["failures", ""] == found["running", ""] == 1
    assert found["last_event_timestamp_seconds", ""] == 1
    assert r'inventory="a \"b\"\\\n.py"' in text
    assert {state for name, state in found if name == "hosts"} == {each.value for each in Phase}


def test_the_file_follows_the_run(tmp_path: Path) -> None:
    run = World(fleet_of("h")).started()
    run.metrics = tmp_path / "upgrade.prom"
    run.write("h", Phase.PREPARED)
    assert samples(run.metrics.read_text())["hosts", "prepared"] == 1
    assert run.metrics.stat().st_mode & 0o777 == 0o644  # the collector is another user


def test_a_file_that_cannot_be_written_stops_nothing(tmp_path: Path) -> None:
    world = World(fleet_of("h"))
    run = world.started()
    run.metrics = tmp_path / "none/upgrade.prom"
    run.write("h", Phase.PREPARED)
    assert "cannot be written" in world.said[-1]


def test_an_undecodable_name_is_written(tmp_path: Path) -> None:
    """The name of a folder on disk may not be valid UTF-8."""
    write_metrics(tmp_path / "a.prom", "x\udcff", UPGRADE_METRICS_PREFIX)
    assert (tmp_path / "a.prom").read_text() == "x\\udcff"


def test_a_file_that_others_wrote_meanwhile_stays(tmp_path: Path) -> None:
    file = tmp_path / "a.prom"
    write_metrics(file, OURS, UPGRADE_METRICS_PREFIX)
    file.write_text("node_load1 1")
    with pytest.raises(OSError, match="no metrics of gpufleet"):
        write_metrics(file, "x", UPGRADE_METRICS_PREFIX)
    assert file.read_text() == "node_load1 1"


def test_no_temporary_file_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*words: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_metrics(tmp_path / "a.prom", "x", UPGRADE_METRICS_PREFIX)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("a.prom", None, ""),
        ("a.prom", b"", ""),
        (
            "a.prom",
            OURS.encode(),
            "",
        ),
        ("a.prom", b"# HELP node_load1 1m load average.", "has no metrics of gpufleet"),
        ("a.prom", b"\xff" * 99, "has no metrics of gpufleet"),
        ("prod.py", None, "does not end in .prom"),
        ("none/a.prom", None, "no folder"),
        ("folder.prom", None, "not a regular file"),
    ],
)
def test_a_file_of_others_is_not_replaced(
    tmp_path: Path, name: str, content: bytes | None, why: str
) -> None:
    (tmp_path / "folder.prom").mkdir()
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    words = ["start", "none.py", "--metrics", str(path), "--to", "1", "--branch", "1"]
    done = CliRunner().invoke(upgrade, words, env={"COLUMNS": "500"})
    assert done.exit_code == 2
    assert (why or "--to and --branch exclude each other") in done.output
    assert content is None or path.read_bytes() == content


def test_events_follow_the_phases() -> None:
    world = World(fleet_of("h", node=True))
    world.carried_out()
    reasons = [body["reason"] for body in world.nodes.events]
    assert reasons == ["GpufleetDrain", "GpufleetChange", "GpufleetChanged"]


@pytest.mark.parametrize(
    ("problem", "says"),
    [
        (ClusterProblem(API_UNREACHABLE(context="c", url="u", reason="r")), 3),
        (ApiError("POST", 403, {}, "c"), 1),
    ],
)
def test_a_cluster_that_takes_no_events_stops_nothing(problem: ClusterProblem, says: int) -> None:
    """gpufleet sends no further event to a cluster that forbids them."""
    world = World(fleet_of("h", node=True))
    world.nodes.problems["post_event"] = problem
    assert world.carried_out() == "finished"
    assert len([line for line in world.said if "no event on its node" in line]) == says


def test_a_lost_lease_stops_the_run() -> None:
    world = World(fleet_of("h", node=True))
    world.nodes.problems["drain"] = ClusterProblem(LEASE_LOST(holder="another"))
    with pytest.raises(ClusterProblem):
        world.carried_out()


def test_an_event_has_the_format_of_the_api() -> None:
    body: Any = event_of("n", "r", Phase.RESTORING, "GF052 x" * 2000, 0.0)
    assert body["involvedObject"]["name"] == "n"
    assert (body["type"], body["reason"]) == ("Warning", "GpufleetRollBack")
    assert len(body["message"]) <= 1024
    assert body["firstTimestamp"] == "1970-01-01T00:00:00Z"
    assert event_of("n", "r", Phase.PREPARED, "", 0.0) is None


@pytest.mark.parametrize(
    ("why", "shown"),
    [
        ("", "passed"),
        ("GF055 /usr/bin/train --key s3cret", "passed (GF055); {}"),
        ("team-a/web waits, exit status 1: s3cret", "passed; {}"),
        ("GF1234 s3cret", "passed; {}"),
    ],
)
def test_an_event_repeats_nothing_of_hosts_and_other_namespaces(why: str, shown: str) -> None:
    """More users than the operator of the fleet may read the namespace of the events."""
    body: Any = event_of("n", "r", Phase.PASSED, why, 0.0)
    shown = shown.format("`gpufleet upgrade status` has the reason")
    assert body["message"] == f"run r of gpufleet upgrade: {shown}"


def test_every_phase_of_a_node_is_reported() -> None:
    assert set(Phase) - OPEN == set(REASONS)
