"""How a container runtime stands after a run."""

from __future__ import annotations

from typing import Literal

# "" where the run did not get as far as its settings
RuntimeState = Literal[
    "",
    "configured",
    "unchanged",
    "restart pending",
    "not running",
    "not managed",
    "nvidia removed",
]
