"""EC2 instances that run and have the tag gpufleet. Its value is their group:

    aws ec2 create-tags --resources i-0abc --tags Key=gpufleet,Value=gpu_nodes
    AWS_PROFILE=prod gpufleet plan inventories/aws.py

Other groups: zone_us_east_1a, model_p4d_24xlarge, tag_team_vision. A host's name is its tag Name,
or else its ID. The AWS CLI reads region and login as usual.
Answers, read 2026-11-29:
https://docs.aws.amazon.com/cli/latest/reference/ec2/describe-instances.html
https://docs.aws.amazon.com/cli/latest/reference/ec2/describe-instance-types.html
"""

from __future__ import annotations

from gpufleet.run.sources import FLEET_TAG, Answer, Machine, ask_program, group_machines, label_tags

_ADDRESS = "PrivateIpAddress"  # or PublicIpAddress


def _ask(command: str, *options: str) -> Answer:
    """An answer of the AWS CLI."""
    words = ("aws", "ec2", command, "--output", "json", *options)
    install = "install the AWS CLI, version 2"
    return ask_program(*words, title=f"aws ec2 {command}", install=install)


def _instances() -> dict[str, tuple[Answer, dict[str, str]]]:
    """Running instances with the tag, and their tags, by ID."""
    answer = _ask("describe-instances", "--filters", f"Name=tag-key,Values={FLEET_TAG}")
    rows = [row for each in answer.rows("Reservations") for row in each.rows("Instances")]
    found = {}
    for row in rows:
        pairs = row.rows("Tags", needed=False)
        tags = {each.need("Key", str): each.need("Value", str) for each in pairs}
        if row.need("State.Name", str) == "running" and FLEET_TAG in tags:
            found[row.need("InstanceId", str)] = (row, tags)
    return found


def _gpus(types: set[str]) -> dict[str, int]:
    """The number of NVIDIA GPUs by type of instance. Parts of a GPU are not counted."""
    if not types:
        return {}
    answer = _ask("describe-instance-types", "--instance-types", *sorted(types))
    return {
        row.need("InstanceType", str): sum(
            gpu.get("Count", int) or 0
            for gpu in row.rows("GpuInfo.Gpus", needed=False)
            if gpu.need("Manufacturer", str) == "NVIDIA"
        )
        for row in answer.rows("InstanceTypes")
    }


def _machines() -> list[Machine]:
    found = _instances()
    gpus = _gpus({row.need("InstanceType", str) for row, _ in found.values()})
    return [
        Machine(
            name=tags.get("Name") or name,
            address=row.need(_ADDRESS, str),
            group=row.part("Tags", tags).need_group(FLEET_TAG),
            gpus=gpus.get(row.need("InstanceType", str)),
            traits={
                "zone": row.get("Placement.AvailabilityZone", str),
                "model": row.get("InstanceType", str),
            },
            labels=label_tags(tags, "Name"),
        )
        for name, (row, tags) in found.items()
    ]


globals().update(group_machines(_machines(), f"aws: no running instance has the tag {FLEET_TAG}"))
