"""100 hosts in ten racks, two groups with different drivers. Upgrades go rack by rack.

gpufleet status examples/racks.py
gpufleet apply examples/racks.py --limit rack_03 --workers 4
gpufleet upgrade examples/racks.py --to 580.178.04 --plan
"""

all_nodes = {
    "ssh_user": "admin",
    "_sudo": True,
    "node_gpus": 8,  # fewer GPUs are a fault in plan, apply and status
    "upgrade_canaries": 2,
    "upgrade_wave": "5%",
    "upgrade_wave_by": "rack",  # a wave stays within one rack
    "upgrade_max_unavailable": "10%",
}


def rack(number: int) -> list[tuple[str, dict[str, str]]]:
    """The ten hosts of a rack."""
    first = 10 * (number - 1)
    names = [f"gpu-{first + place:03}.example.com" for place in range(1, 11)]
    return [(name, {"rack": f"r{number:02}"}) for name in names]


rack_01, rack_02, rack_03, rack_04, rack_05 = (rack(number) for number in range(1, 6))
rack_06, rack_07, rack_08, rack_09, rack_10 = (rack(number) for number in range(6, 11))

gpu_training = (
    rack_01 + rack_02 + rack_03 + rack_04 + rack_05 + rack_06 + rack_07,
    {**all_nodes, "driver_branch": "580"},
)
gpu_inference = (
    rack_08 + rack_09 + rack_10,
    {**all_nodes, "driver_version": "580.178.04", "toolkit_default_runtime": True},
)

# `gpufleet verify` and `--limit gpu_nodes` read this group: every host that must have a driver.
gpu_nodes = [name for name, _ in gpu_training[0] + gpu_inference[0]]
