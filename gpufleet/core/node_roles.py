"""The roles of a node, in the order in which they run, and the states of a runtime.

Each role is a room with a module `role`. Its steps are in the folder of roles/ that the role names.
"""

from __future__ import annotations

from typing import Literal

Shown = Literal["always", "when wanted"]  # in the table of a run and in the history of a record

NODE_ROLES: dict[str, Shown] = {
    "driver": "always",
    "gpu": "when wanted",
    "containerd": "when wanted",
    "toolkit": "always",
    "exporter": "when wanted",
    "kubernetes": "when wanted",
}
# state of a container runtime after a run; "" means: the run ended before this setting
RuntimeState = Literal[
    "",
    "configured",
    "unchanged",
    "restart pending",
    "not running",
    "not managed",
    "nvidia removed",
]
