"""Compute Engine instances that run and have the label gpufleet. Its value is their group:

    gcloud compute instances add-labels gpu-1 --zone us-central1-a --labels gpufleet=gpu_nodes
    gpufleet plan inventories/gcp.py

Other groups: zone_us_central1_a, model_a2_highgpu_8g, tag_team_vision. gcloud reads project and
login as usual.
Answer: https://docs.cloud.google.com/compute/docs/reference/rest/v1/instances (read 2026-11-29)
"""

from __future__ import annotations

from gpufleet.run.sources import FLEET_TAG, Answer, Machine, ask_program, group_machines, label_tags

_ADDRESS = "networkIP"  # or accessConfigs.0.natIP, the public one
_COMMAND = ("gcloud", "compute", "instances", "list", "--format", "json", "--quiet")


def _gpus(row: Answer) -> int:
    """The number of NVIDIA GPUs; other accelerators are TPUs."""
    cards = row.rows("guestAccelerators", needed=False)
    nvidia = [each for each in cards if "/nvidia-" in each.need("acceleratorType", str)]
    return sum(each.need("acceleratorCount", int) for each in nvidia)


def _last(url: str) -> str:
    """The name at the end of a resource's URL."""
    return url.rpartition("/")[2]


def _machine(row: Answer) -> Machine:
    return Machine(
        name=row.need("name", str),
        address=row.need(f"networkInterfaces.0.{_ADDRESS}", str),
        group=row.need_group(f"labels.{FLEET_TAG}"),
        gpus=_gpus(row),
        traits={
            "zone": _last(row.need("zone", str)),
            "model": _last(row.need("machineType", str)),
        },
        labels=label_tags(row.need("labels", dict)),
    )


def _machines() -> list[Machine]:
    answer = ask_program(
        *_COMMAND, f"--filter=labels.{FLEET_TAG}:*",
        title="gcloud compute instances list", install="install the Google Cloud CLI",
    )  # fmt: skip
    return [
        _machine(row)
        for row in answer.rows()
        if row.need("status", str) == "RUNNING" and FLEET_TAG in (row.get("labels", dict) or {})
    ]


globals().update(group_machines(_machines(), f"gcp: no running instance has the label {FLEET_TAG}"))
