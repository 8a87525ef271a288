"""The groups of an inventory that deploys and checks go by."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from difflib import get_close_matches
from fnmatch import fnmatchcase
from pathlib import Path

CLUSTERS = "gpu_cluster"  # each host of it is a cluster, reached from this machine
NODES = "gpu_nodes"
CONTROL_PLANE = "control_plane"  # hosts that Kubernetes' servers run on
EXCLUDED = "!"  # before a word of a limit: all but these
WILD = "*?["  # in a pattern of names
NEAR = 0.8  # similarity of two names that differ by a typo: 1 is equal


def is_cluster(groups: Collection[str]) -> bool:
    """Whether a host of these groups is a cluster, reached by its API and not over SSH."""
    return CLUSTERS in groups and NODES not in groups


def cluster_named_twice(name: str, groups: Collection[str]) -> bool:
    """Whether the clusters of an inventory have that host more than once, as ("@local", a) and
    ("@local", b): pyinfra makes one host of them, and the last one's data count.

    `groups`: of the host, as pyinfra has them. What is left of the second one is its group, once
    more. Of names with an @ pyinfra repeats all groups; the connector's own shows how often.
    """
    found = list(groups)
    usual = found.count(name.split("/")[0]) if name.startswith("@") else 1
    return found.count(CLUSTERS) > usual


def unprintable(names: Iterable[str]) -> str:
    """Why an inventory with these hosts is refused: pyinfra prints their names as they are, and one
    with a line break would be a line of its own; "" where it is not."""
    odd = next((name for name in names if not name.isprintable()), None)
    return "" if odd is None else f"the name {odd!r} has characters that cannot be printed"


def misspelt_cluster_group(groups: Collection[str], keys: Collection[object]) -> str | None:
    """The group of a host that was meant to be gpu_cluster: `gpu_clusters`, `GPU-cluster`.

    `keys`: of the host's data; one of a cluster makes every similar name a misspelt one. Without a
    finding, gpu_node would change the machine that reaches the cluster.
    """
    if CLUSTERS in groups or NODES in groups:
        return None
    of_cluster = any(isinstance(key, str) and key.startswith("cluster_") for key in keys)
    near = get_close_matches(CLUSTERS, groups, n=1, cutoff=NEAR) if of_cluster else []
    same = [name for name in groups if letters_of(name) == letters_of(CLUSTERS)]
    return next(iter((*same, *near)), None)


def letters_of(name: str) -> str:
    """A name without what people mix up: case, separators, the plural."""
    return "".join(filter(str.isalnum, name.lower())).removesuffix("s")


def as_argument(inventory: str) -> str:
    """The inventory on pyinfra's command line: a name that begins with "-" is no option."""
    return f"./{inventory}" if inventory.startswith("-") else inventory


def exactly(name: str) -> str:
    """pyinfra's --limit that selects the host of that name alone. It takes a word for the name of a
    group first, then for a pattern of names: `h100` would select the group h100, `[h]100` does not.
    """
    escaped = [f"[{each}]" if each in WILD else each for each in name]
    first = next((at for at, each in enumerate(name) if each.isalnum()), None)
    if first is not None:
        escaped[first] = f"[{name[first]}]"
    return "".join(escaped)


def choose_hosts(
    hosts: Mapping[str, Sequence[str]], words: Iterable[str], usual: Collection[str] | None = None
) -> list[str]:
    """The names of the hosts that --limit and --exclude leave. `hosts`: name -> groups; `words`:
    names and groups with shell wildcards, those of --exclude with ! before them; `usual`: what is
    chosen without --limit. Raises LookupError for a word that matches no host, and where none is
    left."""
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
    """The option that says a word of a limit, of gpufleet and of pyinfra."""
    name = word.removeprefix(EXCLUDED)
    return ("--limit" if name == word else "--exclude", name)


def is_missing(inventory: str) -> bool:
    """Whether it is a folder, or a missing file: pyinfra would treat the name as a host."""
    path = Path(inventory)
    return path.is_dir() or (inventory.endswith(".py") and not path.is_file())
