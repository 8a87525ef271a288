"""The control plane that `gpufleet sandbox cluster up` started, as the cluster of a deploy.

GPUFLEET_CLUSTER names another one than `default`, GPUFLEET_CHARTS a folder of chart archives.
"""

from __future__ import annotations

import os
from typing import Any

from gpufleet_sandbox.cluster import Cluster

_cluster = Cluster.find(os.environ.get("GPUFLEET_CLUSTER", "default"))
if _cluster is None:  # one line says what to do; a traceback through pyinfra does not
    raise SystemExit("the cluster is not up: run `gpufleet sandbox cluster up`")

gpu_cluster: tuple[list[str], dict[str, Any]] = (
    ["@local"],
    {
        "cluster_kubeconfig": str(_cluster.kubeconfig),
        "cluster_helm": str(_cluster.helm),
        "cluster_chart_dir": os.environ.get("GPUFLEET_CHARTS"),
        "device_plugin_enabled": True,  # simulated nodes advertise GPUs without a plugin
    },
)
