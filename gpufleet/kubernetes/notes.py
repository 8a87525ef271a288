"""Files on a host that record the steps of its join, and files with its kernel settings."""

from __future__ import annotations

from gpufleet.facts.files import HOME

JOINED = f"{HOME}/kubernetes.joined"  # it is a node
KUBERNETES_BEGUN_PATH = f"{HOME}/kubernetes.begun"  # kubeadm, or a reset, did not succeed yet
KUBELET = "/etc/kubernetes/kubelet.conf"  # a node has it until it is reset
NETWORKED = f"{HOME}/kubernetes.network"  # the network's objects were applied
KUBERNETES_READY_PATH = f"{HOME}/kubernetes.ready"  # the node was Ready, with its network
LEAVING = f"{HOME}/kubernetes.leaving"  # access to the cluster that a control plane leaves
INSTALLING = (f"{HOME}/kubernetes.before", f"{HOME}/kubernetes.before.begun")  # packages
MODULES = "/etc/modules-load.d/gpufleet-kubernetes.conf"
SYSCTLS = "/etc/sysctl.d/90-gpufleet-kubernetes.conf"
NODE = frozenset({KUBERNETES_BEGUN_PATH, JOINED, LEAVING})  # the host is a node, or began to be one
