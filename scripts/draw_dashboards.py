"""Draws docs/pictures/dashboard-*.png: the dashboards on the generated fleet of the tests.

Starts the real Prometheus of this machine's distribution and runs the committed queries.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from dashboards import FOLDER  # noqa: E402
from dashboards.pictures import Data, draw  # noqa: E402
from gpufleet_sandbox.cluster.processes import end  # noqa: E402
from tests.monitoring.fleet import BEGIN, END  # noqa: E402
from tests.monitoring.fleet_metrics import openmetrics  # noqa: E402
from tests.monitoring.fleet_rows import Choice  # noqa: E402
from tests.monitoring.programs import Prometheus, start_prometheus, write_blocks  # noqa: E402
from tests.monitoring.shipped import filled_in  # noqa: E402

PICTURES = ROOT / "docs" / "pictures"
TIMES = {"start": str(BEGIN + 600), "end": str(END - 60), "step": "60"}
CHOICES = {  # selected variables of each dashboard
    "node": Choice(node=frozenset({"gpu-4"})),
    "gpu": Choice(node=frozenset({"gpu-2"}), gpu=frozenset({"3", "4"})),
}


def pictures(server: Prometheus, folder: Path) -> dict[str, bytes]:
    """File name -> PNG for every dashboard in a folder."""
    found = {}
    for path in sorted(folder.glob("*.json")):
        choice = CHOICES.get(path.stem, Choice())

        def over_time(text: str, choice: Choice = choice) -> list[Any]:
            query = filled_in(text, choice)
            return list(server.get("query_range", query=query, **TIMES)["result"])

        def now(text: str, choice: Choice = choice) -> list[Any]:
            return server.query(filled_in(text, choice), at=END)

        dashboard = json.loads(path.read_text())
        found[f"dashboard-{path.stem}.png"] = draw(dashboard, Data(over_time, now))
    return found


def main() -> int:
    with TemporaryDirectory(prefix="gpufleet-pictures-") as name:
        blocks = write_blocks(Path(name), openmetrics())
        process, server = start_prometheus(Path(name), "global: {scrape_interval: 1m}\n", blocks)
        try:
            drawn = pictures(server, FOLDER)
        finally:
            end([process])
    PICTURES.mkdir(parents=True, exist_ok=True)
    for name, picture in drawn.items():
        (PICTURES / name).write_bytes(picture)
        print(f"{name}: {len(picture) / 1000:.0f} kB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
