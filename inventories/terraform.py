"""Machines in a state of Terraform or OpenTofu that have the tag, label or metadata gpufleet:

    GPUFLEET_TERRAFORM_DIR=infra gpufleet plan inventories/terraform.py

Its value is their group, as gpu_nodes; gpufleet_gpus, a number, becomes node_gpus. Other groups:
model_p4d_24xlarge, tag_team_vision. `terraform apply -refresh-only` renews the state.
Answer: https://developer.hashicorp.com/terraform/internals/json-format; attributes by the pages of
each resource at https://registry.terraform.io/browse/providers, read 2026-11-29
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator

from gpufleet.run.sources import (
    FLEET_TAG,
    Answer,
    Machine,
    SourceError,
    ask_program,
    group_machines,
    label_tags,
)

_TYPES = {  # resource -> paths of name, address, tags, model, and of the state if it has one
    "aws_instance": ("tags.Name", "private_ip", "tags", "instance_type", "instance_state"),
    "google_compute_instance": (
        "name", "network_interface.0.network_ip", "labels", "machine_type", "current_status"),
    "azurerm_linux_virtual_machine": ("name", "private_ip_address", "tags", "size", ""),
    "openstack_compute_instance_v2": (
        "name", "access_ip_v4", "metadata", "flavor_name", "power_state"),
}  # fmt: skip
_UP = ("running", "active")
_ALL = {"tags": "tags_all", "labels": "effective_labels"}  # with the provider's default tags
_GPUS = f"{FLEET_TAG}_gpus"


def _tags(row: Answer) -> Answer:
    """The tags of a machine."""
    own = _TYPES[row.need("type", str)][2]
    paths = [f"values.{path}" for path in (_ALL.get(own, own), own)]
    path = next((path for path in paths if row.get(path, dict)), paths[-1])
    return row.part(path, row.get(path, dict) or {})


def _resources(module: Answer) -> Iterator[Answer]:
    """The machines of a module and its child modules, with the tag."""
    for row in module.rows("resources", needed=False):
        paths = _TYPES.get(row.need("type", str))
        if paths and row.need("mode", str) == "managed":
            state = row.get(f"values.{paths[4]}", str) if paths[4] else _UP[0]
            if FLEET_TAG in _tags(row).value and (state or "").lower() in _UP:
                yield row
    for child in module.rows("child_modules", needed=False):
        yield from _resources(child)


def _machine(row: Answer) -> Machine:
    name, address, _, model, _ = (f"values.{path}" for path in _TYPES[row.need("type", str)])
    pairs = _tags(row)
    return Machine(
        name=row.get(name, str) or row.need("values.id", str),
        address=row.need(address, str),
        group=pairs.need_group(FLEET_TAG),
        gpus=pairs.get_count(_GPUS),
        traits={"model": row.get(model, str)},
        labels=label_tags(pairs.value, _GPUS, "Name"),
    )


def _machines() -> list[Machine]:
    program = next(filter(shutil.which, ("terraform", "tofu")), "terraform")
    folder = os.environ.get("GPUFLEET_TERRAFORM_DIR", ".")
    state = ask_program(
        program, f"-chdir={folder}", "show", "-json", "-no-color",
        title=f"{program} show", install="install Terraform or OpenTofu",
    )  # fmt: skip
    if not state.need("format_version", str).startswith("1."):
        raise SourceError(f"{state.at('format_version')} is not 1, the one that this file reads")
    if state.get("values", dict) is None:
        raise SourceError(f"{program} show: the state is empty; is {folder!a} the right folder?")
    root = state.part("values.root_module", state.need("values.root_module", dict))
    return [_machine(row) for row in _resources(root)]


globals().update(group_machines(_machines(), f"terraform: no running machine has {FLEET_TAG}"))
