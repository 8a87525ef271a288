"""Clusters in `gpufleet status`, from the report of their plan."""

from __future__ import annotations

import csv
import io
from typing import Any

from rich.console import Console

from gpufleet.status.clusters import cluster_rows
from gpufleet.status.export import as_csv, fleet_json
from gpufleet.status.metrics import status_metrics_text
from gpufleet.status.models import FleetStatus
from gpufleet.status.page import as_html
from gpufleet.status.text import show_status

NOW = 1_764_064_000
BLOCKER = {"code": "GF820", "severity": "blocker", "message": "No.", "remedy": "Do."}

KEPT = {"severity": "warning", "message": "Flux applies it.", "remedy": "Render again."}


def part(status: str = "converged", **more: Any) -> dict[str, Any]:
    releases = {
        "nvidia-device-plugin": {"before": "0.19.0", "after": "0.20.0"},
        "dcgm-exporter": {"before": None, "after": "4.8.2"},
    }
    return {"status": status, "releases": releases, "plan": {"steps": []}, "findings": []} | more


def test_a_cluster_has_the_flags_of_its_plan() -> None:
    parts = {
        "calm": part(),
        "drifted": part("planned", plan={"steps": ["upgrade nvidia-device-plugin"]}),
        "behind": part(findings=[{**KEPT, "code": "GF826"}]),
        "refused": part(findings=[{**KEPT, "code": "GF827"}]),
        "kept": part(findings=[{**KEPT, "code": "GF825", "severity": "info"}]),
        "blocked": part("failed", findings=[BLOCKER]),
        "away": part("not reached", findings=[BLOCKER]),
    }
    rows = cluster_rows([*parts, "unplanned"], parts)
    assert {row.name: row.flags for row in rows} == {
        "calm": (),
        "drifted": ("drift",),
        "behind": ("drift",),
        "refused": ("drift",),
        "kept": (),
        "blocked": ("blocked",),
        "away": ("unreachable",),
        "unplanned": ("unreachable",),
    }
    assert [row.name for row in rows if not row.reached] == ["away", "unplanned"]
    assert rows[0].releases == (("nvidia-device-plugin", "0.19.0"),), "as installed"
    document = fleet_json(FleetStatus("inv.py", (), rows), NOW)["clusters"]
    assert document["drifted"]["steps"] == ["upgrade nvidia-device-plugin"]
    out = io.StringIO()
    show_status(Console(file=out, width=80), FleetStatus("inv.py", (), rows))
    assert "nvidia-device-plugin 0.19.0" in out.getvalue()
    assert "8 clusters: 2 unreachable, 1 blocked, 3 drift, 2 without a flag" in out.getvalue()


def test_every_export_has_clusters() -> None:
    parts = {"lab": part("failed", findings=[BLOCKER])}
    fleet = FleetStatus("inv.py", (), cluster_rows(parts, parts))
    (line,) = csv.DictReader(io.StringIO(as_csv(fleet, 0)))
    known = {name: text for name, text in line.items() if text}
    assert known == {
        "host": "lab", "reached": "true", "flags": "blocked", "codes": "GF820", "kind": "cluster",
        "releases": "nvidia-device-plugin 0.19.0", "time": "1970-01-01T00:00:00Z",
    }  # fmt: skip
    metrics = status_metrics_text(fleet, NOW)
    assert 'gpufleet_status_cluster_flag{cluster="lab",flag="blocked"} 1\n' in metrics
    assert 'gpufleet_status_cluster_flag{cluster="lab",flag="drift"} 0\n' in metrics
    named = '{cluster="lab",release="nvidia-device-plugin",version="0.19.0"} 1\n'
    assert f"gpufleet_status_cluster_release_info{named}" in metrics
    page = as_html(fleet, NOW)
    assert "<td>nvidia-device-plugin 0.19.0<br></td>" in page
    assert '<span class="flag bad">blocked</span>' in page
    assert '<span class="flag bad">blocker</span>, 1 cluster: No.' in page
    assert "<dt>blocked</dt>" in page
