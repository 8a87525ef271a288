"""Slurm nodes: a driver upgrade drains each node with scontrol and resumes it afterwards.

    gpufleet upgrade examples/slurm.py --to 580.178.04 --plan
    gpufleet upgrade examples/slurm.py --to 580.178.04

The two commands run on the controller, once for each node; {host} is its name in the inventory,
which must be its NodeName in slurm.conf.
They change and resume no node that another user drained: its reason is not gpufleet.
"""

DRAIN = (
    'sh -c \'case $(sinfo -h -n {host} -o "%T %E") in '
    '*" gpufleet") ;; dr*|down*) exit 1 ;; esac; '
    "scontrol update nodename={host} state=drain reason=gpufleet || exit 1; "
    "until sinfo -h -n {host} -o %T | grep -q drained; do sleep 10; done'"
)
READY = (
    "sh -c 'case $(sinfo -h -n {host} -o %E) in gpufleet) "
    "scontrol update nodename={host} state=resume ;; esac'"
)

gpu_nodes = (
    ["node-01", "node-02", "node-03", "node-04"],
    {
        "ssh_user": "admin",
        "_sudo": True,
        "driver_branch": "580",
        "upgrade_drain_command": DRAIN,
        "upgrade_ready_command": READY,
        "upgrade_command_timeout": 24 * 3600,  # seconds; the longest job takes a day
        "upgrade_max_unavailable": 2,
    },
)
