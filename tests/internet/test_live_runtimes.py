"""The configuration of container runtimes: their own programs read what gpufleet writes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.internet.conftest import Note
from tests.internet.places import PLACES, ROOT, start_place


@pytest.mark.parametrize("name", PLACES["runtimes"])
def test_runtime(name: str, tmp_path: Path, note: Note) -> None:
    entry = PLACES["runtimes"][name]
    entry = {**entry, "data": {**entry.get("data", {}), "driver_enabled": False}}
    with start_place(entry, tmp_path) as place:
        note(place.against)
        place.deploy(ROOT / "deploys/gpu_node.py")
        assert "nvidia-container-runtime" in place.sh(entry["check"])
