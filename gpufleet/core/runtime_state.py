"""How a container runtime stands after a run."""

from __future__ import annotations

from typing import Literal

# "" where the run did not get as far as its settings
RuntimeState = Literal[
    "",
    "configured",
    "as it was",
    "waits for a restart",
    "not running",
    "not managed",
    "without nvidia",
]
