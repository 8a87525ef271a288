"""Virtual machines of Azure that run and have the tag gpufleet. Its value is their group:

    az vm update -g gpu -n gpu-1 --set tags.gpufleet=gpu_nodes tags.gpufleet_gpus=8
    gpufleet plan inventories/azure.py

The tag gpufleet_gpus, a number, becomes node_gpus: the answer has no GPUs. Other groups:
zone_westeurope, model_standard_nd96isr_h100_v5, tag_team_vision. az uses the login of `az login`.
Answer: https://learn.microsoft.com/en-us/cli/azure/vm#az-vm-list and show_vm in
https://github.com/Azure/azure-cli (command_modules/vm/custom.py), read 2026-11-29
"""

from __future__ import annotations

from gpufleet.run.sources import FLEET_TAG, Answer, Machine, ask_program, group_machines, label_tags

_ADDRESS = "privateIps"  # or publicIps
_GPUS = f"{FLEET_TAG}_gpus"


def _machine(row: Answer) -> Machine:
    tags = row.need("tags", dict)
    return Machine(
        name=row.need("name", str),
        address=row.need(_ADDRESS, str).partition(",")[0],
        group=row.need_group(f"tags.{FLEET_TAG}"),
        gpus=row.part("tags", tags).get_count(_GPUS),
        traits={
            "zone": row.get("location", str),
            "model": row.get("hardwareProfile.vmSize", str),
        },
        labels=label_tags(tags, _GPUS),
    )


def _machines() -> list[Machine]:
    answer = ask_program(
        "az", "vm", "list", "--show-details", "--output", "json",
        title="az vm list", install="install the Azure CLI",
    )  # fmt: skip
    return [
        _machine(row)
        for row in answer.rows()
        if row.need("powerState", str) == "VM running"
        and FLEET_TAG in (row.get("tags", dict) or {})
    ]


globals().update(group_machines(_machines(), f"azure: no running machine has the tag {FLEET_TAG}"))
