"""The groups of an inventory that deploys and checks go by."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

CLUSTERS = "gpu_cluster"  # each host of it is a cluster, reached from this machine
NODES = "gpu_nodes"


def cluster_named_twice(name: str, groups: Collection[str]) -> bool:
    """Whether the clusters of an inventory have that host more than once, as ("@local", a) and
    ("@local", b): pyinfra makes one host of them, and the last one's data count.

    `groups`: of the host, as pyinfra has them. What is left of the second one is its group, once
    more. Of names with an @ pyinfra repeats all groups; the connector's own shows how often.
    """
    found = list(groups)
    usual = found.count(name.split("/")[0]) if name.startswith("@") else 1
    return found.count(CLUSTERS) > usual


def as_argument(inventory: str) -> str:
    """The inventory on pyinfra's command line: a name that begins with "-" is no option."""
    return f"./{inventory}" if inventory.startswith("-") else inventory


def is_missing(inventory: str) -> bool:
    """Whether it is a missing file: pyinfra would treat the name as a host."""
    return inventory.endswith(".py") and not Path(inventory).is_file()
