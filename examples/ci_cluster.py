"""Bare hosts become a Kubernetes cluster with GPUs for one CI job, and are cleaned afterwards.

gpufleet cluster create examples/ci_cluster.py --yes --junit create.xml
KUBECONFIG=ci.kubeconfig kubectl get nodes
gpufleet cluster destroy examples/ci_cluster.py --yes
"""

control_plane = ["ci-cp.example.com"]
gpu_nodes = ["ci-gpu-1.example.com", "ci-gpu-2.example.com"]

all_hosts = (
    control_plane + gpu_nodes,
    {
        "ssh_user": "root",
        "kubernetes_enabled": True,
        "kubernetes_version": "1.36",
        "kubernetes_kubeconfig": "ci.kubeconfig",
        "toolkit_default_runtime": True,  # pods with GPUs need no RuntimeClass
        "node_reboot": "if_needed",
    },
)

gpu_cluster = (
    ["@local"],
    {"cluster_kubeconfig": "ci.kubeconfig", "monitoring_enabled": False},
)
