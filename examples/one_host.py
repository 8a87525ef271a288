"""One host with a GPU: driver and container toolkit.

gpufleet plan examples/one_host.py
gpufleet apply examples/one_host.py
gpufleet verify examples/one_host.py
"""

gpu_nodes = (
    ["gpu-01.example.com"],
    {
        "ssh_user": "admin",
        "_sudo": True,
        "driver_branch": "580",
    },
)
