"""GPUs for pods: NFD labels the nodes, NVIDIA's device plugin or DRA driver offers their GPUs."""

from __future__ import annotations

from gpufleet.gpu_stack.operations import stack as operations
from gpufleet.gpu_stack.operations.stack import Stack
from gpufleet.helm.builder import DRA, NFD, PLUGIN
from gpufleet.host.operation import host_role


@host_role("Device plugin")
def install(stack: Stack) -> None:
    """Apply the plans of NFD and the plugin; without NFD, label the nodes. Then share the GPUs:
    the plugin leaves nodes of the DRA driver before that starts there."""
    operations.label_nodes(
        "Label the GPU nodes",
        stack.run.cluster.api,
        stack.plan.label_nodes,
        stack.plan.label,
        stack.plan.label_value,
    )
    operations.ensure_runtime_class(
        "Create the RuntimeClass",
        stack.run.cluster.api,
        stack.run.settings.device_plugin.runtime_class,
    )
    stack.apply(NFD)
    stack.retire_configs()
    stack.apply(PLUGIN)
    stack.share_gpus()
    stack.apply(DRA)
