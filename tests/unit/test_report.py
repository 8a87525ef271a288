"""The report: JSON that scripts can rely on, a table that people can read."""

from __future__ import annotations

import io
import json

from rich.console import Console

from gpufleet.findings import host as findings
from gpufleet.report import HostReport, as_json, show


def hosts() -> list[HostReport]:
    moved = HostReport("gpu-01", changed=7, driver={"before": "550.163.01", "after": "580.178.04"})
    moved.toolkit = {"before": None, "after": "1.20.1"}
    moved.runtimes = {"docker": "configured"}
    moved.needs = ["reboot: nouveau holds the GPU"]
    blocked = HostReport("gpu-02", failed=True)
    blocked.findings = [findings.MODULE_BUSY(), findings.NO_GPU()]
    blocked.errors = ["Load the modules\n  [brackets] are shown as they are"]
    return [moved, blocked, HostReport("gpu-03")]


def shown(*, dry: bool = False) -> str:
    out = io.StringIO()
    show(Console(file=out, width=200), hosts(), dry=dry)
    return out.getvalue()


def test_json_has_what_scripts_ask_for() -> None:
    data = json.loads(as_json(hosts()))["hosts"]
    assert list(data) == ["gpu-01", "gpu-02", "gpu-03"]
    assert data["gpu-01"]["driver"] == {"before": "550.163.01", "after": "580.178.04"}
    assert data["gpu-02"]["failed"] is True
    assert data["gpu-02"]["findings"][0]["code"] == "GF552"
    for part in data.values():
        assert {"changed", "failed", "driver", "toolkit", "runtimes", "needs", "findings",
                "seconds"} <= set(part)  # fmt: skip


def test_the_table_says_what_moved_and_what_is_left_to_do() -> None:
    text = shown()
    assert "550.163.01 -> 580.178.04" in text
    assert "none -> 1.20.1" in text
    assert "reboot: nouveau holds the GPU" in text
    assert "no changes" in text
    assert "3 hosts: 1 changed, 1 with no changes, 1 failed" in text


def test_an_exporter_has_a_column_only_where_there_is_one() -> None:
    assert "exporter" not in shown()
    with_exporter = hosts()
    with_exporter[0].exporter = {"before": "4.8.2", "after": "4.8.3.002"}
    out = io.StringIO()
    show(Console(file=out, width=200), with_exporter)
    assert "exporter" in out.getvalue()
    assert "4.8.2 -> 4.8.3.002" in out.getvalue()


def test_blockers_and_errors_are_told_with_what_to_do() -> None:
    text = shown()
    assert "GF552" in text
    assert "driver_reboot" in text
    assert "[brackets] are shown as they are" in text


def test_notes_are_for_the_preflight() -> None:
    assert "GF501" not in shown()
    assert "GF501" in shown(dry=True)
