"""The hosts of the sandbox: `gpufleet sandbox up` makes them, this file finds them.

GPUFLEET_SANDBOX names another sandbox than `default`. The mirror is no GPU node.
"""

from __future__ import annotations

import os
from typing import Any

from gpufleet_sandbox.errors import SandboxError
from gpufleet_sandbox.inventory import group_data, nodes
from gpufleet_sandbox.state import DEFAULT

try:
    _nodes = nodes(os.environ.get("GPUFLEET_SANDBOX", DEFAULT))
except SandboxError as error:  # one line says what to do; a traceback through pyinfra does not
    raise SystemExit(str(error)) from error

# No users on these hosts: they may be rebooted, as ubuntu2404 must be to unload nouveau.
gpu_nodes: tuple[list[tuple[str, dict[str, Any]]], dict[str, Any]] = (
    _nodes,
    {**group_data(), "node_reboot": "if_needed"},
)
