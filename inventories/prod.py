"""An example inventory: replace the hosts with yours. It loads as it is:

    pyinfra inventories/prod.py debug-inventory

A group is a list; `([hosts], {data})` gives a group its settings, `("name", {data})` one host.
What a key means, and every other key: docs/reference/keys.md.
Settings of all hosts are in inventories/group_data/all.py. On the command line:

    pyinfra inventories/prod.py deploys/gpu_node.py --limit gpu_new --data driver_branch=580
"""

# Settings that the groups share. Versions are text: 570.10 as a number would become 570.1.
ssh = {
    "ssh_user": "admin",
    "ssh_strict_host_key_checking": "yes",
    "_sudo": True,
}

# Training nodes: the newest version of the long-term branch at the time of installation.
gpu_training = (
    ["train-01.example.com", "train-02.example.com"],
    {**ssh, "driver_branch": "580", "toolkit_runtimes": ("containerd",)},
)

# Inference nodes: one exact version, held; docker with nvidia as its default runtime.
gpu_inference = (
    ["infer-01.example.com", ("infer-02.example.com", {"driver_allow_disruption": True})],
    {**ssh, "driver_version": "580.159.03", "toolkit_default_runtime": True},
)

# Old machines: CentOS 7 ends at branch 550. This one uses private mirrors. If they sign with
# another key than NVIDIA's, set driver_repo_key_fingerprint and toolkit_repo_key_fingerprint.
gpu_old = (
    ["old-01.example.com"],
    {
        **ssh,
        "driver_branch": "550",
        "driver_repo_url": "https://mirror.example.com/cuda/repos",
        "toolkit_repo_url": "https://mirror.example.com/libnvidia-container",
    },
)

# The group of the checks and of `--limit gpu_nodes`: every host that should have a driver.
gpu_nodes = gpu_training[0] + gpu_inference[0] + gpu_old[0]

# The Kubernetes cluster that they form, reached from this machine. Only deploys/gpu_cluster.py
# applies to it, deploys/gpu_node.py ignores it. Delete this group if you have no cluster.
gpu_cluster = (
    ["@local"],
    {"cluster_kubeconfig": "~/.kube/config", "monitoring_node_port": 30090},
)
