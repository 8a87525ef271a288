"""Hosts and a cluster without internet: every source is a mirror inside.

    gpufleet plan examples/closed_network.py --check    # asks the mirrors
    gpufleet apply examples/closed_network.py

docs/how-to/closed-network.md lists what each mirror must hold.
"""

MIRROR = "https://mirror.example.com"

gpu_nodes = (
    ["gpu-01.example.com", "gpu-02.example.com"],
    {
        "ssh_user": "admin",
        "_sudo": True,
        "driver_branch": "580",
        "driver_repo_url": f"{MIRROR}/cuda/repos",
        "toolkit_repo_url": f"{MIRROR}/libnvidia-container",
    },
)

gpu_cluster = (
    ["@local"],
    {
        "cluster_kubeconfig": "~/.kube/config",
        "cluster_chart_dir": "/srv/charts",
        "cluster_helm_url": f"{MIRROR}/helm",
    },
)
