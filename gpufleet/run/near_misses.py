"""Misspelt keys of pyinfra, which treats them as user data."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from difflib import get_close_matches
from functools import cache

from pyinfra.api import Host
from pyinfra.api.arguments import all_global_arguments
from pyinfra.connectors.ssh import connector_data_meta

from gpufleet.core.findings import Finding
from gpufleet.core.findings.settings import NEAR_MISS, NO_SUCH_GROUP
from gpufleet.core.inventory import letters_of

NEAR = 0.8  # similarity of two keys that differ by a typo: 1 is equal
ELSEWHERE = {  # Ansible's names for the same
    "become": "_sudo",
    "become_user": "_sudo_user",
    "become_password": "_sudo_password",
    "ansible_become": "_sudo",
    "ansible_host": "ssh_hostname",
    "ansible_port": "ssh_port",
    "ansible_user": "ssh_user",
}


def misspelt(host: Host) -> list[Finding]:
    """Warnings about keys of a host that were meant for its connection, and about data for a group
    that was meant to be one of its groups."""
    inventory = host.inventory
    empty = [
        name
        for name, data in inventory.group_data.items()
        if data and not inventory.groups.get(name)
    ]
    return [*misspelt_keys(host.data.dict()), *groups_meant(empty, host.groups)]


def misspelt_keys(data: Iterable[object]) -> list[Finding]:
    """A warning for each key of a host's data that was meant to be one of pyinfra's own."""
    own = _keys_of_pyinfra()
    known = ((key, _meant(key, own)) for key in data if isinstance(key, str) and key not in own)
    return [NEAR_MISS(key=key, meant=meant) for key, meant in known if meant]


@cache
def _keys_of_pyinfra() -> frozenset[str]:
    """The keys that pyinfra reads of a host: the same for all."""
    return frozenset({*connector_data_meta, *(name for name, _ in all_global_arguments())})


def groups_meant(names: Iterable[str], groups: Collection[str]) -> list[Finding]:
    """A warning for each of the `names` of groups without hosts that was meant to be one of a
    host's `groups`: `gpu-nodes`, `GPU_nodes`, `gpu_node`."""
    usual = {letters_of(group): group for group in groups}
    return [
        NO_SUCH_GROUP(name=name, meant=usual[letters_of(name)])
        for name in names
        if letters_of(name) in usual
    ]


def _meant(key: str, own: Collection[str]) -> str | None:
    """Only keys of the connection and of privileges: `timeout` and `ssh_keys` may well be data."""
    plain = key.lower().replace("-", "_")
    if plain in ELSEWHERE:
        return ELSEWHERE[plain]
    if plain.startswith(("su", "doas", "dzdo")):
        return f"_{plain}" if f"_{plain}" in own else None
    if not plain.startswith(("ssh", "_")):
        return None
    close = get_close_matches(plain, own, n=1, cutoff=NEAR)
    return close[0] if close and plain != f"{close[0]}s" else None
