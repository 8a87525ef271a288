"""`gpufleet adopt`: exit statuses, and the output for hosts that cannot be planned."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from click.testing import CliRunner, Result

from gpufleet.cli import adopt, main
from gpufleet.status.models import SeenHost
from tests.unit.status.fleets import bare, healthy, seen, silent


def run(monkeypatch: pytest.MonkeyPatch, *hosts: SeenHost) -> Result:
    def read(inventory: str, limit: Sequence[str]) -> tuple[list[SeenHost], list[object]]:
        return list(hosts), []

    monkeypatch.setattr(adopt, "read_hosts_and_clusters", read)
    return CliRunner().invoke(main, ["adopt", "inv.py"], catch_exceptions=False)


def test_it_ends_well_where_every_host_responded(monkeypatch: pytest.MonkeyPatch) -> None:
    full = seen("gpu-02", bare(free_bytes={"/usr": 10**6, "/var": 10**11, "/boot": 10**9}))
    done = run(monkeypatch, seen("gpu-01", healthy("550.163.01"), driver_branch="580"), full)
    assert done.exit_code == 0, done.output
    assert 'driver_version = "550.163.01"' in done.stdout
    assert "blocks   GF540 " in done.stdout
    assert "GF540 blocker gpu-02: " in done.stdout
    assert "warning" not in done.stdout


def test_hosts_without_a_plan_are_named_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    done = run(monkeypatch, silent("gpu-01"), seen("gpu-02", bare(), driver_brnch="580"))
    assert done.exit_code == 1
    assert "GF005 blocker gpu-01: " in done.stdout
    assert "GF201 blocker gpu-02: " in done.stdout
    assert "add" not in done.stdout.split()
