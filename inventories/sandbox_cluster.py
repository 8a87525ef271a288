"""Hosts of the sandbox as a Kubernetes cluster: the first one is the control plane.

`gpufleet sandbox cluster up --real` starts them. GPUFLEET_SANDBOX names another sandbox than
`default`, GPUFLEET_CHARTS a folder of chart archives: with it, the GPU stack is installed too, and
with GPUFLEET_MONITORING=1 Prometheus, prometheus-adapter and Node Problem Detector as well.
"""

from __future__ import annotations

import os
from typing import Any

from gpufleet_sandbox.errors import SandboxError
from gpufleet_sandbox.inventory import cluster_data, group_data, nodes, stack_data
from gpufleet_sandbox.kubernetes.cluster import KINDS as _kinds
from gpufleet_sandbox.stack import monitoring_data
from gpufleet_sandbox.state import DEFAULT

_sandbox = os.environ.get("GPUFLEET_SANDBOX", DEFAULT)
try:
    _nodes = [node for node in nodes(_sandbox) if node[0].partition("-")[0] in _kinds]
    _cluster = cluster_data(_sandbox)
except SandboxError as error:
    raise SystemExit(str(error)) from error

gpu_nodes: tuple[list[tuple[str, dict[str, Any]]], dict[str, Any]] = (
    _nodes,
    {**group_data(), **_cluster, "node_reboot": "if_needed", "kubernetes_control_plane_pods": True},
)
control_plane = [_nodes[0]]

if _charts := os.environ.get("GPUFLEET_CHARTS"):
    _stack = stack_data(_sandbox, _charts)
    if os.environ.get("GPUFLEET_MONITORING") == "1":
        _stack |= monitoring_data()
    gpu_cluster: tuple[list[str], dict[str, Any]] = (["@local"], _stack)
