"""The Grafana dashboards as code: `python -m dashboards` writes templates/monitoring/dashboards.

Built with Grafana's foundation SDK. No deploy imports this package: deploys carry the JSON files.
"""

from __future__ import annotations

from pathlib import Path

from dashboards import capacity, fleet, gpu, node, workload

FOLDER = Path(__file__).resolve().parents[1] / "templates" / "monitoring" / "dashboards"

ALL = (
    fleet.DASHBOARD,
    node.DASHBOARD,
    gpu.DASHBOARD,
    workload.DASHBOARD,
    capacity.DASHBOARD,
)
