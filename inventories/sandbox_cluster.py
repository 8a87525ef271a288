"""Hosts of the sandbox as a Kubernetes cluster: the first one is the control plane.

`gpufleet sandbox cluster up --real` starts them. GPUFLEET_SANDBOX names another sandbox than
`default`.
"""

from __future__ import annotations

import os
from typing import Any

from gpufleet_sandbox.errors import SandboxError
from gpufleet_sandbox.inventory import cluster_data, group_data, nodes
from gpufleet_sandbox.state import DEFAULT

try:
    _nodes = nodes(os.environ.get("GPUFLEET_SANDBOX", DEFAULT))
    _cluster = cluster_data()
except SandboxError as error:
    raise SystemExit(str(error)) from error

gpu_nodes: tuple[list[tuple[str, dict[str, Any]]], dict[str, Any]] = (
    _nodes,
    {**group_data(), **_cluster, "node_reboot": "if_needed", "kubernetes_control_plane_pods": True},
)
control_plane = [_nodes[0]]
