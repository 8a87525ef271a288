"""CentOS 7 beside Ubuntu: the old hosts end at branch 550 and read packages from archives.

gpufleet plan examples/centos7_and_ubuntu.py
gpufleet catalog driver --distro rhel7 --gpu T4     # why 550
"""

ssh = {"ssh_user": "admin", "_sudo": True}

gpu_ubuntu = (["gpu-01.example.com", "gpu-02.example.com"], {**ssh, "driver_branch": "580"})

gpu_centos7 = (
    ["old-01.example.com"],
    {
        **ssh,
        "driver_branch": "550",  # NVIDIA's last branch for RHEL 7
        "node_archives": True,  # vault.centos.org: the mirrors of CentOS 7 are gone
        "accepted_findings": {"GF103": "until 2027-06-30, replaced by then"},
    },
)

gpu_nodes = gpu_ubuntu[0] + gpu_centos7[0]
