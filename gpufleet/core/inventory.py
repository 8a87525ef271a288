"""The inventory groups that deploys and checks use, and the selection of hosts."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from difflib import get_close_matches
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Protocol

CLUSTERS = "gpu_cluster"  # each host in it is a cluster, reached from this machine
NODES_GROUP = "gpu_nodes"
CONTROL_PLANE = "control_plane"  # hosts of the Kubernetes control plane
KUBECONFIG_KEY = "kubernetes_kubeconfig"  # of the control plane
EXCLUDED = "!"  # before a word of a limit: excludes its hosts
WILD = "*?["  # in a pattern of names
NAME_SIMILARITY = 0.8  # similarity of two names that differ by a typo; 1 means equal


class ListedHost(Protocol):
    """A host of the inventory with its groups and data, such as `verify.inventory.Target`."""

    @property
    def name(self) -> str: ...

    @property
    def groups(self) -> tuple[str, ...]: ...

    @property
    def data(self) -> Mapping[str, Any]: ...

    @property
    def is_cluster(self) -> bool: ...


def kubeconfig_of(targets: Sequence[ListedHost]) -> str:
    """The path in the data of the control plane, or "" if it sets no path."""
    planes = [target for target in targets if CONTROL_PLANE in target.groups]
    paths = [plane.data[KUBECONFIG_KEY] for plane in planes if plane.data.get(KUBECONFIG_KEY)]
    return str(paths[0]) if paths else ""


def is_cluster(groups: Collection[str]) -> bool:
    """True if a host of these groups is a cluster, reached over its API and not over SSH."""
    return CLUSTERS in groups and NODES_GROUP not in groups


def cluster_named_twice(name: str, groups: Collection[str]) -> bool:
    """True if the group of clusters lists a host more than once, as ("@local", a), ("@local", b).
    pyinfra merges them into one host with the data of the last one.

    `groups`: the host's groups, from pyinfra, which repeats the group for each entry. For names
    with an @ it repeats all groups: the connector's own group then shows the usual count.
    """
    found = list(groups)
    usual = found.count(name.split("/")[0]) if name.startswith("@") else 1
    return found.count(CLUSTERS) > usual


def refuse_unprintable_names(names: Iterable[str]) -> str | None:
    """Why an inventory with these hosts is refused, or None. pyinfra prints names unescaped, so a
    name with a line break could forge a line of output."""
    odd = next((name for name in names if not name.isprintable()), None)
    return None if odd is None else f"the name {odd!r} has characters that cannot be printed"


def misspelt_cluster_group(groups: Collection[str], keys: Collection[object]) -> str | None:
    """The group of a host that looks like a misspelt gpu_cluster: `gpu_clusters`, `GPU-cluster`.

    `keys`: the host's data keys. If one is a cluster's, any similar name counts as misspelt.
    Without a finding, gpu_node would change the machine that reaches the cluster.
    """
    if CLUSTERS in groups or NODES_GROUP in groups:
        return None
    of_cluster = any(isinstance(key, str) and key.startswith("cluster_") for key in keys)
    near = get_close_matches(CLUSTERS, groups, n=1, cutoff=NAME_SIMILARITY) if of_cluster else []
    same = [name for name in groups if letters_of(name) == letters_of(CLUSTERS)]
    return next(iter((*same, *near)), None)


def letters_of(name: str) -> str:
    """A name without its usual variations: case, separators, plural."""
    return "".join(filter(str.isalnum, name.lower())).removesuffix("s")


def as_argument(inventory: str) -> str:
    """The inventory for pyinfra's command line; a leading "-" does not become an option."""
    return f"./{inventory}" if inventory.startswith("-") else inventory


def exact_limit(name: str) -> str:
    """A --limit for pyinfra that selects only the host of that name. pyinfra reads a word first as
    a group, then as a pattern: `h100` would select the group h100, `[h]100` does not."""
    escaped = [f"[{each}]" if each in WILD else each for each in name]
    first = next((at for at, each in enumerate(name) if each.isalnum()), None)
    if first is not None:
        escaped[first] = f"[{name[first]}]"
    return "".join(escaped)


def choose_hosts(
    hosts: Mapping[str, Sequence[str]], words: Iterable[str], usual: Collection[str] | None = None
) -> list[str]:
    """The hosts that --limit and --exclude select. `hosts`: name -> groups; `words`: names and
    groups with shell wildcards, with ! before those to exclude; `usual`: the hosts selected without
    --limit. Raises LookupError if a word matches no host, or if no host is left."""
    words = list(words)
    limits = [word for word in words if not word.startswith(EXCLUDED)]
    chosen = set() if limits else set(hosts if usual is None else usual)
    for word in sorted(words, key=lambda word: word.startswith(EXCLUDED)):
        plain = word.removeprefix(EXCLUDED)
        found = {
            name
            for name, groups in hosts.items()
            if any(fnmatchcase(each, plain) for each in (name, *groups))
        }
        chosen = chosen | found if plain == word else chosen - found
        if not found or not chosen:
            what = "leaves no host" if found else "matches no host or group"
            raise LookupError(" ".join((*option_of(word), what)))
    return [name for name in hosts if name in chosen]


def option_of(word: str) -> tuple[str, str]:
    """The command line option that a word of a limit stands for, and its value."""
    name = word.removeprefix(EXCLUDED)
    return ("--limit" if name == word else "--exclude", name)


def is_missing(inventory: str) -> bool:
    """True for a folder or a missing file: pyinfra would treat the name as a host."""
    path = Path(inventory)
    return path.is_dir() or (inventory.endswith(".py") and not path.is_file())
