"""The block about the impact, which is the first one of a plan."""

from __future__ import annotations

import io
from typing import Any

from rich.console import Console

from gpufleet.role.impact import Impact
from gpufleet.run.impact import impact_lines
from gpufleet.run.report import HostReport
from gpufleet.run.report_table import show_report

SOURCE = {"cuda": ("http://mirror/", "https://nvidia/")}


def host(name: str, impact: Impact, **fields: Any) -> HostReport:
    part = HostReport(name, **{"status": "planned", **fields})
    part.plan = {"steps": ["driver: x"], "impact": impact.as_json()}
    part.roles["driver"] = {"before": None, "after": "580.1"}
    return part


def test_a_fleet_is_a_few_lines() -> None:
    busy = Impact({"docker.service": 5}, ("/etc/a", "/etc/b"), SOURCE, reboot="possible", pods=1)
    away = Impact({"docker.service": 1, "x.service": None}, ("/etc/a",), unloads=True, pods=2)
    hosts = [*(host(f"a{at}", busy) for at in range(100)), host("b", away)]
    assert impact_lines(hosts) == [
        "restarts: docker.service on 101 hosts (501 containers running), x.service on 1 host",
        "reboots: 100 hosts if the driver cannot be loaded otherwise",
        "GPUs unavailable while the driver changes: on 1 host; 2 pods with GPUs there now",
        "driver: none -> 580.1 on 101 hosts",
        "package source: cuda: http://mirror/ -> https://nvidia/ on 100 hosts",
        "files: /etc/a on 101 hosts, /etc/b on 100 hosts",
    ]


def test_what_does_not_happen_is_said_where_it_matters() -> None:
    lines = impact_lines([host("a", Impact(files=("/etc/a",)))])
    assert lines[:3] == [
        "restarts: none",
        "reboots: none",
        "GPUs unavailable while the driver changes: none",
    ]
    (line,) = [
        line for line in impact_lines([host("a", Impact(reboot="manual"))]) if "reboot" in line
    ]
    assert line == "reboots: none; 1 host may need one, which node_reboot does not allow"


def test_many_files_are_counted_by_folder() -> None:
    paths = tuple(f"/etc/{folder}/{at}" for folder in ("x", "y") for at in range(7))
    lines = impact_lines([host("a", Impact(files=paths))])
    assert lines[-1] == "files: 14 paths on up to 1 host (/etc/x 7, /etc/y 7)"


def test_only_planned_hosts_count() -> None:
    restart = Impact({"docker.service": 5})
    assert impact_lines([host("a", restart, status="failed")]) == []
    assert impact_lines([host("a", restart, status="converged")]) == []


def test_releases_are_counted_by_what_is_done() -> None:
    lab = HostReport("lab", kind="cluster", status="planned")
    actions = ("install", "install", "upgrade", "no-op")
    lab.plan = {"steps": ["x"], "releases": [{"action": action} for action in actions]}
    assert impact_lines([lab]) == ["releases: install 2, upgrade 1"]


def test_the_block_comes_first_in_a_plan_and_in_no_run() -> None:
    found = [host("a", Impact())]
    for dry in (True, False):
        out = io.StringIO()
        show_report(Console(file=out, width=200), found, dry=dry)
        assert out.getvalue().startswith("Impact\n  restarts: none\n") == dry


def test_a_run_counts_the_steps_of_its_plan() -> None:
    node = host("a", Impact(), status="changed", changed=4)
    node.settle()
    fewer = HostReport("a", status="changed", changed=1, plan={"steps": ["x", "y"]})
    fewer.settle()
    unplanned = HostReport("a", status="changed", changed=2)
    unplanned.settle()
    lab = HostReport("lab", kind="cluster", status="changed", changed=2, plan={"steps": ["x"]})
    lab.settle()
    assert [each.changed for each in (node, fewer, unplanned, lab)] == [1, 1, 2, 2]
