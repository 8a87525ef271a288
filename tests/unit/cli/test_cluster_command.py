"""`gpufleet cluster create`: its phases, and where it stops."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from typing import Any

import pytest
from click.testing import CliRunner

from gpufleet.cli import cluster
from gpufleet.verify.inventory import Target

PLANE = Target("cp-1", ("control_plane",), {})
STACK = Target("@cluster/prod", ("gpu_cluster",), {})
Run = Callable[..., list[list[str]]]


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs the command with targets and statuses of its phases; returns what it started."""

    def run(targets: list[Target], statuses: dict[int, int], expected: int) -> list[list[str]]:
        calls: list[list[str]] = []

        def fake(words: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
            calls.append(words)
            return subprocess.CompletedProcess(words, statuses.get(len(calls), 0))

        monkeypatch.setattr(cluster, "targets_of", lambda inventory, limit: targets)
        monkeypatch.setattr(subprocess, "run", fake)
        done = CliRunner().invoke(
            cluster.cluster, ["create", "inv.py", "--yes", "--junit", "r.xml"]
        )
        assert done.exit_code == expected, done.output
        return calls

    return run


def test_hosts_then_stack_then_checks(started: Run) -> None:
    hosts, stack, checks = started([PLANE, STACK], {}, 0)
    assert hosts[-1].endswith("gpu_node.py")
    assert stack[-1].endswith("gpu_cluster.py")
    assert checks[-4:] == ["verify", "inv.py", "--junit", "r.xml"]


def test_without_a_cluster_in_the_inventory_there_is_no_stack(started: Run) -> None:
    assert len(started([PLANE], {}, 0)) == 2


def test_a_failed_phase_ends_it(started: Run) -> None:
    assert len(started([PLANE, STACK], {1: 1}, 1)) == 1
    assert len(started([PLANE, STACK], {2: 130}, 130)) == 2


def test_a_control_plane_is_needed(started: Run) -> None:
    assert started([STACK], {}, 2) == []
