"""Bare machine -> GPU node: driver, container toolkit, exporter."""

from gpufleet.host.boundary import one_host
from gpufleet.node.operations.faults import require_no_faults, unaccepted_faults
from gpufleet.node.operations.node import current_node
from gpufleet.roles.node import install_roles

with one_host():  # a problem of one host stops only this host
    node = current_node()  # settings validated, one fact gathered
    if node and node.has_work:
        install_roles(node)  # gpufleet/core/node_roles.py lists them; their steps are in roles/
        if left := unaccepted_faults(node.plan.faults.left):
            require_no_faults("Check the GPUs", left)
