"""Machines of MAAS that are deployed, powered on, and have the tag gpufleet:

    maas login admin http://maas.example.com:5240/MAAS   # asks for the API key
    maas admin tags create name=gpufleet
    MAAS_PROFILE=admin gpufleet plan inventories/maas.py

They are in gpu_nodes, those with the tag control-plane in control_plane. Other groups: zone_r1,
pool_training, tag_NAME. The API key stays in the profile of the MAAS CLI.
Answer: https://canonical.com/maas/docs/cli-machines, DISPLAYED_MACHINE_FIELDS in
https://github.com/canonical/maas (src/maasserver/api/machines.py), read 2026-11-29
"""

from __future__ import annotations

import os

from gpufleet.run.sources import (
    FLEET_TAG,
    Answer,
    Machine,
    SourceError,
    ask_program,
    group_machines,
)

_CONTROL_PLANE = "control-plane"  # a tag
_profile = os.environ.get("MAAS_PROFILE", "")
if not _profile or _profile.startswith("-"):
    raise SourceError("maas: set MAAS_PROFILE to a profile of `maas login`")


def _tags(row: Answer) -> list[str]:
    return [each.need("", str) for each in row.rows("tag_names")]


def _is_up(row: Answer) -> bool:
    """True if it is deployed. MAAS does not know the power of every kind of machine."""
    power = row.need("power_state", str)
    return row.need("status_name", str) == "Deployed" and power != "off"


def _machine(row: Answer) -> Machine:
    tags = _tags(row)
    return Machine(
        name=row.need("fqdn", str),
        address=row.need("ip_addresses.0", str),
        group="control_plane" if _CONTROL_PLANE in tags else "gpu_nodes",
        traits={"zone": row.get("zone.name", str), "pool": row.get("pool.name", str)},
        labels=[("tag", tag) for tag in tags],
    )


def _machines() -> list[Machine]:
    answer = ask_program(
        "maas", _profile, "machines", "read",
        title="maas machines read", install="install the MAAS CLI (snap install maas)",
    )  # fmt: skip
    return [_machine(row) for row in answer.rows() if FLEET_TAG in _tags(row) and _is_up(row)]


globals().update(group_machines(_machines(), f"maas: no deployed machine has the tag {FLEET_TAG}"))
