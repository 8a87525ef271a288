"""The report: JSON that scripts can rely on, a table that people can read."""

from __future__ import annotations

import io
import json
import re
from datetime import datetime, timedelta, timezone
from typing import get_args

import jsonschema
import pytest
from rich.console import Console

from gpufleet.core.exit_status import ExitStatus
from gpufleet.core.live import QUIET
from gpufleet.core.names import name_hosts
from gpufleet.core.node_roles import RuntimeState
from gpufleet.driver.findings import host as findings
from gpufleet.node.findings import HOST_WITHOUT_GPU
from gpufleet.run.report import HostReport, RunFacts, report_json
from gpufleet.run.report_table import show_report
from tests.unit.run.report_setup import ROOT, SCHEMA

pytestmark = pytest.mark.claim(
    "The JSON report fits its schema and is readable for its user only.",
    level=1,
)

RUN = RunFacts(
    "inventories/prod.py",
    ("deploys/gpu_node.py",),
    datetime(2026, 11, 22, 9, 0, tzinfo=timezone(timedelta(hours=1))),
    datetime(2026, 11, 22, 8, 1, tzinfo=timezone.utc),
    dry=False,
    exit_status=1,
)


def hosts() -> list[HostReport]:
    moved = HostReport(
        "gpu-01",
        status="changed",
        changed=7,
    )
    moved.roles["driver"] = {"before": "550.163.01", "after": "580.178.04"}
    moved.roles["toolkit"] = {"before": None, "after": "1.20.1"}
    moved.runtimes = {"docker": "configured"}
    moved.needs = ["reboot: nouveau holds the GPU"]
    blocked = HostReport("gpu-02", status="failed", failed=True)
    blocked.findings = [findings.MODULE_BUSY(), HOST_WITHOUT_GPU()]
    blocked.errors = ["Load the modules\n  [brackets] are shown as they are"]
    return [moved, blocked, HostReport("gpu-03", status="converged")]


def shown(*, dry: bool = False) -> str:
    out = io.StringIO()
    show_report(Console(file=out, width=200), hosts(), dry=dry)
    return out.getvalue()


def test_json_has_what_scripts_ask_for() -> None:
    report = json.loads(report_json(hosts(), RUN))
    jsonschema.validate(report, SCHEMA)
    assert report["started"] == "2026-11-22T08:00:00Z"
    assert (report["dry"], report["exit_status"]) == (False, 1)
    data = report["hosts"]
    assert list(data) == ["gpu-01", "gpu-02", "gpu-03"]
    assert data["gpu-01"]["driver"] == {"before": "550.163.01", "after": "580.178.04"}
    assert data["gpu-02"]["failed"] is True
    assert data["gpu-02"]["findings"][0]["code"] == "GF552"
    for part in data.values():
        assert {"changed", "failed", "driver", "toolkit", "runtimes", "needs", "findings",
                "seconds"} <= set(part)  # fmt: skip


def test_the_schema_refuses_what_it_does_not_know() -> None:
    report = json.loads(report_json(hosts(), RUN))
    for spoilt in (
        report | {"schema": 2},
        report | {"news": 1},
        report | {"started": "yesterday"},
        report | {"hosts": {"a": report["hosts"]["gpu-01"] | {"status": "fine"}}},
        report | {"hosts": {"a": report["hosts"]["gpu-01"] | {"driver": {}}}},
        report | {"hosts": {"a": report["hosts"]["gpu-01"] | {"plan": {}}}},
    ):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(spoilt, SCHEMA)


def test_a_host_that_was_not_read_has_every_key() -> None:
    unread = [HostReport("gpu-01"), HostReport("lab", kind="cluster")]
    report = json.loads(report_json(unread, RUN))
    jsonschema.validate(report, SCHEMA)
    node, cluster = report["hosts"]["gpu-01"], report["hosts"]["lab"]
    assert (node["status"], node["plan"]) == ("not reached", {"steps": []})
    for role in ("driver", "toolkit", "exporter"):
        assert node[role] == {"before": None, "after": None}
        assert cluster[role] == {}


def test_runtimes_stand_as_schema_and_page_say() -> None:
    states = get_args(RuntimeState)
    host = SCHEMA["$defs"]["host"]["properties"]["runtimes"]
    assert tuple(host["additionalProperties"]["enum"]) == states
    page = (ROOT / "docs/reference/report.md").read_text()
    (row,) = [line for line in page.splitlines() if line.startswith("| `runtimes` |")]
    assert [state for state in states if state and f"`{state}`" not in row] == []


def test_after_is_what_was_seen_and_else_what_was_there_before() -> None:
    host = HostReport("gpu-01")
    host.roles["driver"] = {"before": "550.163.01", "after": "580.178.04"}
    host.roles["toolkit"] = {"before": None, "after": "1.20.1"}
    host.releases = {"dcgm": {"before": "4.8.1", "after": "4.8.2"}}
    host.seen["toolkit"] = "1.20.1"
    host.settle()
    assert host.roles["driver"] == {"before": "550.163.01", "after": "550.163.01"}
    assert host.roles["toolkit"] == {"before": None, "after": "1.20.1"}
    assert host.releases == {"dcgm": {"before": "4.8.1", "after": "4.8.1"}}
    assert host.roles["exporter"] == {}


@pytest.mark.parametrize("name", ["[/red]", "[bold]gpu[/bold]", "a[b", ":smile:"])
def test_names_are_never_markup(name: str) -> None:
    out = io.StringIO()
    host = HostReport(name, status="failed", findings=[findings.MODULE_BUSY()], errors=[name])
    host.roles["driver"] = {"before": name, "after": None}
    host.steps.append(name)
    host.needs.append(name)
    cluster = HostReport(name, kind="cluster", releases={name: host.roles["driver"]}, needs=[name])
    show_report(Console(file=out, width=200), [host, cluster], dry=True)
    assert out.getvalue().count(name) == 12


def test_an_unknown_version_of_a_plan_is_not_none() -> None:
    moved: dict[str, str | None] = {"before": "550.163.01", "after": None}
    upgrade = HostReport("a", status="planned", roles={"driver": moved})
    removal = HostReport("b", status="planned", leaves=True, roles={"driver": dict(moved)})
    out = io.StringIO()
    show_report(Console(file=out, width=200), [upgrade, removal], dry=True)
    assert "550.163.01 -> newest" in out.getvalue()
    assert out.getvalue().count("-> none") == 1


def test_the_table_says_what_moved_and_what_is_left_to_do() -> None:
    text = shown()
    assert "550.163.01 -> 580.178.04" in text
    assert "none -> 1.20.1" in text
    assert "reboot: nouveau holds the GPU" in text
    assert "no changes" in text
    assert "3 hosts: 1 changed, 1 with no changes, 1 failed" in text


def test_the_summary_counts_hosts_that_failed_after_changes() -> None:
    moved: dict[str, str | None] = {"before": None, "after": "580.178.04"}
    failed = HostReport("a", status="failed", failed=True, changed=5, roles={"driver": moved})
    blocked = HostReport("b", status="failed", failed=True)
    out = io.StringIO()
    show_report(Console(file=out, width=200), [failed, blocked])
    assert "2 hosts: 0 changed, 0 with no changes, 2 failed (1 after changes)" in out.getvalue()


TABLES = """\
GPU nodes
host    driver                    toolkit         runtimes           changes      still needed                   time
gpu-01  550.163.01 -> 580.178.04  none -> 1.20.1  docker configured  7            reboot: nouveau holds the GPU  0.0 s
gpu-02  -                         -                                  failed                                      0.0 s
gpu-03  -                         -                                  no changes                                  0.0 s
gpu-04  -                         -                                  not reached                                 0.0 s
Clusters
cluster  releases       changes  time
lab      x 1.0 -> 1.1   2        61.2 s
         y none -> 2.0
"""  # noqa: E501
SUMMARY = "4 hosts, 1 cluster: 2 changed, 1 with no changes, 1 failed, 1 not reached"


def test_the_tables_of_a_run_and_of_a_preview() -> None:
    released = {"x": {"before": "1.0", "after": "1.1"}, "y": {"before": None, "after": "2.0"}}
    lab = HostReport("lab", kind="cluster", status="changed", changed=2, releases=released)
    lab.seconds = 61.25
    lost = HostReport("gpu-04", errors=["Connect\n  no route"])
    text = "\n".join(line.rstrip() for line in of(*hosts(), lost, lab, dry=False).splitlines())
    assert text.startswith(TABLES)
    assert "not reached gpu-04: Connect\n  no route\nGF552" in text
    assert text.endswith(f"\n{SUMMARY}")
    preview = "\n".join(line.rstrip() for line in of(*hosts(), lost, lab).splitlines())
    words = {"GPU nodes": "Plan", "Clusters": "Plan of the clusters", "  failed ": "  blocked"}
    for word, other in words.items():
        text = text.replace(word, other)
    assert preview.splitlines()[:-1] == text.splitlines()[:-1]
    assert preview.endswith(
        SUMMARY.replace("2 changed", "2 to change").replace("failed", "blocked")
    )


def test_an_exporter_has_a_column_only_where_there_is_one() -> None:
    assert "exporter" not in shown()
    with_exporter = hosts()
    with_exporter[0].roles["exporter"] = {"before": "4.8.2", "after": "4.8.3.002"}
    out = io.StringIO()
    show_report(Console(file=out, width=200), with_exporter)
    assert "exporter" in out.getvalue()
    assert "4.8.2 -> 4.8.3.002" in out.getvalue()


def test_blockers_and_errors_are_reported_with_what_to_do() -> None:
    text = shown()
    assert "GF552" in text
    assert "node_reboot" in text
    assert "[brackets] are shown as they are" in text
    assert text.index("failed gpu-02: ") < text.index("GF552"), "the failure comes first"


def test_infos_of_a_converged_host_are_in_the_plan_alone() -> None:
    same = HostReport("a", status="converged", findings=[HOST_WITHOUT_GPU()])
    assert "GF501" not in of(same, dry=False)
    assert "GF501 info a" in of(same)
    changed = HostReport("a", status="changed", changed=1, findings=[HOST_WITHOUT_GPU()])
    assert "GF501 info a" in of(changed, dry=False)
    assert "GF501 info gpu-02" in shown()  # of a host that failed


def test_a_quiet_run_names_what_it_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise the steps are named while they run. The user's own operations are named, too, and
    what changed on a host that failed later."""
    held = "NVIDIA driver | Hold the packages"
    changed = HostReport("a", status="changed", changed=2, operations=[held, "Write the motd"])
    failed = HostReport("b", status="failed", failed=True, changed=1, operations=[held])
    assert "Hold the packages" not in of(changed, failed, dry=False)
    monkeypatch.setenv(QUIET, "1")
    shown = of(changed, failed, dry=False)
    assert f"changed {name_hosts(['a', 'b'])}: NVIDIA driver: Hold the packages" in shown
    assert "changed a: Write the motd" in shown


def test_versions_are_whole_at_80_columns() -> None:
    out = io.StringIO()
    show_report(Console(file=out, width=80), hosts())
    text = out.getvalue()
    assert max(map(len, text.splitlines())) <= 80
    for version in ("550.163.01", "580.178.04", "1.20.1"):
        assert version in text


def test_a_column_that_is_empty_everywhere_is_left_out() -> None:
    assert "still needed" in " ".join(shown().split())
    assert "needed" not in of(planned("a", "x"))


def planned(name: str, *steps: str) -> HostReport:
    host = HostReport(name, status="planned", changed=len(steps), findings=[HOST_WITHOUT_GPU()])
    host.steps.extend(steps)
    return host


def of(*found: HostReport, dry: bool = True) -> str:
    out = io.StringIO()
    show_report(Console(file=out, width=200), list(found), dry=dry)
    return out.getvalue()


def test_what_hosts_share_is_there_once() -> None:
    text = of(planned("a1", "x", "z"), planned("a2", "x", "z"), planned("b", "x", "y", "z"))
    steps = [line for line in text.splitlines() if line.startswith("would")]
    assert steps == [
        "would 3 hosts (a[1-2], b): x",
        "would b: y",
        "would 3 hosts (a[1-2], b): z",
    ]
    assert [line.split()[:2] for line in text.splitlines()[2:4]] == [["2", "hosts"], ["b", "-"]]
    assert text.count("GF501") == 1
    assert "GF501 info 3 hosts (a[1-2], b): " in text


def test_hosts_and_clusters_are_counted_apart() -> None:
    cluster = HostReport("lab", kind="cluster", status="converged")
    blocked = HostReport("a", status="failed", failed=True)
    assert of(planned("b", "x"), cluster, blocked).endswith(
        "2 hosts, 1 cluster: 1 to change, 1 with no changes, 1 blocked\n"
    )
    assert of(cluster, dry=False).endswith("1 cluster: 0 changed, 1 with no changes, 0 failed\n")


def test_a_preview_stops_nothing() -> None:
    blocked = HostReport("a", status="failed", failed=True)
    assert "failed" not in of(blocked)
    assert "blocked" in of(blocked)
    assert "failed" in of(blocked, dry=False)


def test_the_page_about_the_report_names_every_key() -> None:
    page = (ROOT / "docs/reference/report.md").read_text()
    host = SCHEMA["$defs"]["host"]["properties"]
    for key in (*SCHEMA["properties"], *host, *host["status"]["enum"]):
        assert f"`{key}`" in page


def test_every_exit_status_is_in_the_table() -> None:
    page = (ROOT / "docs/reference/exit-status.md").read_text()
    reported = set(re.findall(r"^\| (\d+) \|", page, re.MULTILINE))
    assert reported == {str(int(status)) for status in ExitStatus}
    assert set(SCHEMA["properties"]["exit_status"]["enum"]) == set(ExitStatus)


def test_hosts_that_are_the_same_share_a_line() -> None:
    found = [HostReport(f"gpu-{n:02}", status="converged", seconds=n / 10) for n in range(1, 41)]
    for host in found:
        host.roles["driver"] = {"before": "580.1", "after": "580.1"}
    found[6].roles["driver"] = {"before": "550.9", "after": "550.9"}
    for host in found[7:9]:
        host.status, host.changed = "changed", 2
    out = io.StringIO()
    show_report(Console(file=out, width=80), found)
    lines = [line.split("  ") for line in out.getvalue().splitlines()]
    assert [[cell.strip() for cell in line if cell] for line in lines[2:-1]] == [
        ["37 hosts (gpu-[01-06], gpu-[10-40])", "580.1", "-", "no changes", "4.0 s"],
        ["gpu-07", "550.9", "-", "no changes", "0.7 s"],
        ["2 hosts (gpu-[08-09])", "580.1", "-", "2", "0.9 s"],
    ]
    assert lines[-1] == ["40 hosts: 2 changed, 38 with no changes, 0 failed"]


def test_a_host_that_a_blocker_stopped_did_not_fail() -> None:
    """An alert about failed runs must not fire for a host that was not changed."""
    stopped = HostReport(
        "a", status="failed", failed=True, findings=[HOST_WITHOUT_GPU(), findings.MODULE_BUSY()]
    )
    assert any(each.blocks for each in stopped.findings)
    failed = HostReport("b", status="failed", failed=True, errors=["apt failed"])
    begun = HostReport("c", status="failed", failed=True, changed=2, findings=stopped.findings)
    out = io.StringIO()
    show_report(Console(file=out, width=200), [stopped, failed, begun])
    last = out.getvalue().splitlines()[-1]
    assert last == "3 hosts: 0 changed, 0 with no changes, 1 blocked, 2 failed (1 after changes)"
