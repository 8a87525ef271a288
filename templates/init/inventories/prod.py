"""The hosts and clusters of this fleet. Replace the example hosts with yours, then:

    gpufleet plan inventories/prod.py

Keys that begin with driver_, toolkit_, exporter_ say what a host should have; data of all hosts may
be in group_data/all.py. A value that a host has to itself: ("gpu-01", {"driver_branch": "570"}).
"""

gpu_nodes = (
    ["gpu-01.example.com", ("gpu-02", {"ssh_hostname": "gpu-02.example.com"})],
    {
        "ssh_user": "admin",  # who may run sudo without a password
        "ssh_strict_host_key_checking": "yes",  # the hosts' keys are in ~/.ssh/known_hosts
        "_sudo": True,
        "driver_branch": "580",
    },
)

# The Kubernetes cluster that they form, reached from this machine:
# gpu_cluster = (["@local"], {"cluster_kubeconfig": "~/.kube/config"})
