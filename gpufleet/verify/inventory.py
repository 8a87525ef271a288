"""The hosts of a pyinfra inventory, for the checks."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

from gpufleet.core.findings import Finding
from gpufleet.core.findings.settings import MISSPELT_GROUP
from gpufleet.core.inventory import (
    CLUSTERS,
    NODES_GROUP,
    as_argument,
    choose_hosts,
    cluster_named_twice,
    is_cluster,
    is_missing,
    misspelt_cluster_group,
    refuse_unprintable_names,
)
from gpufleet.core.names import fold_names
from gpufleet.core.process import Process
from gpufleet.core.python import error_place, python_code
from gpufleet.core.secrets import register_secrets_of
from gpufleet.core.stopped import Stopped, Unmatched
from gpufleet.kube.findings import NAMED_TWICE
from gpufleet.run.findings import INVENTORY_NOT_FOUND
from gpufleet.verify.findings.hosts import LIMIT_MATCHES_NOTHING

HOST_LIST = "import pyinfra_cli; from gpufleet.run.host_list import print_hosts; print_hosts()"


@dataclass(frozen=True, slots=True)
class Target:
    """One host of the inventory: name, groups and data (functions become text).

    Its secrets are registered, and hidden in all output.
    """

    name: str
    groups: tuple[str, ...]
    data: dict[str, Any]
    problems: tuple[str, ...] | None = None  # problems in its settings that stop a deploy
    gpu_keys: dict[str, dict[str, Any]] = field(default_factory=dict)  # of a cluster: by node

    def __post_init__(self) -> None:
        register_secrets_of(self.data)

    @property
    def is_cluster(self) -> bool:
        """True if it is a cluster, reached over its API and not over SSH."""
        return is_cluster(self.groups)


def parse_targets(text: str) -> list[Target]:
    """The hosts in the output of `pyinfra --json INVENTORY debug-inventory`: its last line, as the
    inventory may print others."""
    listed = json.loads(text.rstrip().rpartition("\n")[2])
    return [Target(host["name"], tuple(host["groups"]), dict(host["data"])) for host in listed]


def load_targets(inventory: str) -> list[Target]:
    """Load the inventory with pyinfra, to get the same groups and data as a run.

    Raises Stopped if pyinfra cannot load the file (GF701).
    """
    if is_missing(inventory):
        raise Stopped(INVENTORY_NOT_FOUND(path=inventory, why="no such file"))
    words = ["--json", as_argument(inventory), "debug-inventory"]
    done = Process([*python_code(HOST_LIST), *words], prompts=True).wait()
    why = pyinfra_reason(done.stderr)
    if not done.ok:
        raise Stopped(
            INVENTORY_NOT_FOUND(path=inventory, why=why or done.why or "pyinfra gives no reason")
        )
    try:
        targets = parse_targets(done.stdout)
    except (ValueError, KeyError, TypeError) as error:
        why = f"pyinfra printed no host list ({error})"
        raise Stopped(INVENTORY_NOT_FOUND(path=inventory, why=why)) from error
    if not targets:
        raise Stopped(INVENTORY_NOT_FOUND(path=inventory, why=why or "it has no hosts"))
    if refused := refuse_unprintable_names(target.name for target in targets):
        raise Stopped(INVENTORY_NOT_FOUND(path=inventory, why=refused))
    for target in targets:
        if cluster_named_twice(target.name, target.groups):
            raise Stopped(NAMED_TWICE(name=target.name))
        if meant := misspelt_cluster_group(target.groups, target.data):
            raise Stopped(MISSPELT_GROUP(name=meant))
    return targets


def pyinfra_reason(printed: str) -> str:
    """Why pyinfra failed: its last line, and the place in the user's file. Other lines may come
    from the inventory and contain secrets."""
    found = (line.strip() for line in printed.splitlines())
    lines = [line for line in found if line and not line.startswith("-->")]
    if not lines:
        return ""
    return lines[-1] + error_place(printed)


def select_targets(
    targets: Iterable[Target], limits: Sequence[str], inventory: str
) -> list[Target]:
    """The hosts to check, in inventory order.

    `limits`: words for choose_hosts. Without --limit: the groups `gpu_nodes` and `gpu_cluster` if
    the inventory has them, else every host. Raises Unmatched (GF702) if a word matches nothing.
    """
    targets = list(targets)
    managed = [target for target in targets if {NODES_GROUP, CLUSTERS}.intersection(target.groups)]
    return limit_targets(targets, limits, inventory, [target.name for target in managed] or None)


def limit_targets(
    targets: Sequence[Target],
    limits: Sequence[str],
    inventory: str,
    usual: Sequence[str] | None = None,
) -> list[Target]:
    """The hosts that --limit and --exclude select. Raises Unmatched (GF702)."""
    try:
        names = choose_hosts({each.name: each.groups for each in targets}, limits, usual)
    except LookupError as error:
        groups = [group for target in targets for group in target.groups]
        hosts = [target.name for target in targets]
        raise Unmatched(unmatched_limit(str(error.args[0]), inventory, hosts, groups)) from error
    return [target for target in targets if target.name in names]


def unmatched_limit(wrong: str, path: str, hosts: Sequence[str], groups: Iterable[str]) -> Finding:
    """The finding (GF702) for an unmatched limit. `wrong` is choose_hosts' text. pyinfra's own
    groups are left out, as users do not know them."""
    own = [name for name in dict.fromkeys(groups) if not name.startswith("@")]
    near = get_close_matches(wrong.split(" ")[1], [*hosts, *own], n=1)
    meant = f": did you mean {near[0]}?" if near else "; shell wildcards match several: 'gpu-0*'."
    return LIMIT_MATCHES_NOTHING(
        wrong=wrong,
        path=path,
        hosts=", ".join(fold_names(hosts)),
        groups=", ".join(own) or "none",
        meant=meant,
    )
