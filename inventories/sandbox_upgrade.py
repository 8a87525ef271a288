"""The cluster of `make demo-upgrade`: four nodes at work, and how their driver is upgraded.

GPUFLEET_SANDBOX names another sandbox than `demo-upgrade`, GPUFLEET_CHARTS the folder of charts.
"""

from __future__ import annotations

import os
from typing import Any

from gpufleet_sandbox.errors import SandboxError
from gpufleet_sandbox.inventory import cluster_data, group_data, nodes, stack_data

_sandbox = os.environ.get("GPUFLEET_SANDBOX", "demo-upgrade")
try:
    _nodes, _cluster = nodes(_sandbox), cluster_data(_sandbox)
    _stack = stack_data(_sandbox, os.environ.get("GPUFLEET_CHARTS", "build/charts"))
except SandboxError as error:  # one line says what to do
    raise SystemExit(str(error)) from error

gpu_nodes: tuple[list[tuple[str, dict[str, Any]]], dict[str, Any]] = (
    _nodes,
    {
        **group_data(),  # repositories of the sandbox
        **_cluster,  # its Kubernetes
        "kubernetes_control_plane_pods": True,
        "node_reboot": "if_needed",
        "upgrade_drain": "gpu",  # pods without a GPU stay
        "upgrade_jobs": "evict",  # the training saves a checkpoint when it is asked to end
        "upgrade_max_failed": 1,  # the first node that fails ends the run
        "upgrade_soak": 10,
        "upgrade_gpu_image": _stack["verify_gpu_image"],
    },
)
control_plane = [_nodes[0]]
gpu_cluster: tuple[list[str], dict[str, Any]] = (["@local"], _stack)
