"""The roles of a node, by name and in the order in which they run, and states of runtimes.

Each is a room with a module `role`; its steps are in the folder of roles/ that the role names.
"""

from __future__ import annotations

from typing import Literal

Shown = Literal["always", "when wanted"]  # in the table of a run and in the history of a record

NODE_ROLES: dict[str, Shown] = {
    "driver": "always",
    "containerd": "when wanted",
    "toolkit": "always",
    "exporter": "when wanted",
    "kubernetes": "when wanted",
}
# of a container runtime after a run; "" where the run did not get as far as its settings
RuntimeState = Literal[
    "",
    "configured",
    "unchanged",
    "restart pending",
    "not running",
    "not managed",
    "nvidia removed",
]
