"""Shared by the tests of report."""

from __future__ import annotations

import json
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
SCHEMA = json.loads((ROOT / "gpufleet/run/report.schema.json").read_text())
