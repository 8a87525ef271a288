"""Findings about the data in an inventory."""

from __future__ import annotations

from gpufleet.core.findings import blocker, info, warning

UNKNOWN_KEY = blocker(
    "GF201",
    "Unknown setting",
    "Unsupported key {key} in {place}: no role has it.",
    "{suggestion}",
    description="The inventory or --data sets {key}, which starts with the prefix of a role but is "
    "not one of its keys. Nothing was done.",
    advice="Correct the spelling (the finding suggests the closest key), or give your own data a "
    "name without a role's prefix.",
)

INVALID_VALUE = blocker(
    "GF202",
    "Invalid value",
    "{key} = {value} {problem}.",
    "Correct it in the inventory, in group_data or on the command line.",
    description="The value of a key has the wrong type, or is not one of the allowed values. The "
    "message shows key, value and what is allowed. Nothing was done.",
)

CONTRADICTION = blocker(
    "GF203",
    "Conflicting settings",
    "{first} conflicts with {second}: {problem}.",
    "Change or remove one of the two.",
    description="Two keys exclude each other, such as two sources of charts, or a driver_version "
    "of another driver_branch; the message shows both. Nothing was done.",
)

NEAR_MISS = warning(
    "GF204",
    "Key unknown to pyinfra",
    "Neither pyinfra nor any role reads {key} in {place}; it has no effect.",
    "Did you mean {meant}? If this is your own data, give it another name.",
)

MISSPELT_GROUP = blocker(
    "GF207",
    "Misspelt group",
    "The group {name} was probably meant to be gpu_cluster; gpufleet would treat its hosts as GPU "
    "nodes.",
    "Rename the group to gpu_cluster; or, if these hosts are GPU nodes, put them into gpu_nodes.",
)

DATA_UNUSED = info(
    "GF205",
    "Data for a group without hosts",
    "There is data for group {name}, which has no hosts in this inventory; it has no effect.",
    "{question}A file in group_data must have exactly the name of its group. If the group is in "
    "another inventory, keep the file.",
)
