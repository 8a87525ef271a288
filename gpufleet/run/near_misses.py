"""Finds misspelt pyinfra keys, which pyinfra treats as user data."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from difflib import get_close_matches
from functools import cache

from pyinfra.api import Host
from pyinfra.api.arguments import all_global_arguments
from pyinfra.connectors.ssh import connector_data_meta

from gpufleet.core.findings import Finding, Severity
from gpufleet.core.findings.settings import DATA_UNUSED, NEAR_MISS
from gpufleet.core.inventory import letters_of
from gpufleet.core.load_settings import place_of_key

NEAR_GROUP = 0.85  # similarity of two groups that differ by a typo
_DIGITS = re.compile(r"\d")
DATA_KEY_SIMILARITY = 0.8  # similarity of two keys that differ by a typo: 1 is equal
# Ansible's names for these keys. Source (read 2026-11-28):
# https://docs.ansible.com/ansible/latest/inventory_guide/intro_inventory.html
ELSEWHERE = {
    "become": "_sudo",
    "become_user": "_sudo_user",
    "become_password": "_sudo_password",
    "ansible_become": "_sudo",
    "ansible_become_pass": "_sudo_password",
    "ansible_become_password": "_sudo_password",
    "ansible_become_user": "_sudo_user",
    "ansible_host": "ssh_hostname",
    "ansible_password": "ssh_password",
    "ansible_port": "ssh_port",
    "ansible_ssh_pass": "ssh_password",
    "ansible_ssh_private_key_file": "ssh_key",
    "ansible_user": "ssh_user",
}


def find_misspelt_keys(host: Host) -> list[Finding]:
    """Findings about keys of a host that were meant for its connection, and about data for groups
    without hosts."""
    groups = host.inventory.groups
    named = [name for name, data in host.inventory.group_data.items() if data and name != "all"]
    empty = [name for name in named if not groups.get(name)]
    given = host.inventory.get_override_data()
    return [*misspelt_keys(host.data.dict(), given), *groups_meant(empty, host.groups, groups)]


def misspelt_keys(data: Iterable[object], given: Collection[str] = ()) -> list[Finding]:
    """A warning for each key of a host's data that was probably meant to be a pyinfra key. `given`:
    the keys that the command line sets."""
    own = _keys_of_pyinfra()
    known = ((key, _meant(key, own)) for key in data if isinstance(key, str) and key not in own)
    return [
        NEAR_MISS(key=key, place=place_of_key(key, given), meant=meant)
        for key, meant in known
        if meant
    ]


@cache
def _keys_of_pyinfra() -> frozenset[str]:
    """The keys that pyinfra reads from a host's data; they are the same for all hosts."""
    return frozenset({*connector_data_meta, *(name for name, _ in all_global_arguments())})


def groups_meant(
    names: Iterable[str], groups: Collection[str], every: Collection[str]
) -> list[Finding]:
    """A finding for each of the `names` of groups without hosts: a warning for a host of the group
    that was probably meant (`gpu-nodes`, `gpu_trainng`), otherwise an info. `groups`: of the host;
    `every`: of the inventory."""
    found = []
    for name in names:
        meant = _group_meant(name, every)
        if meant is None:
            found.append(DATA_UNUSED(name=name, question=""))
        elif meant in groups:
            question = f"Did you mean {meant}? "
            found.append(DATA_UNUSED(Severity.WARNING, name=name, question=question))
    return found


def _group_meant(name: str, every: Collection[str]) -> str | None:
    """The group that was meant. Names that differ in digits or by a word are two: rack1, rack2."""
    same = [group for group in every if letters_of(group) == letters_of(name)]
    near = get_close_matches(name, every, n=1, cutoff=NEAR_GROUP)
    typos = [
        group
        for group in near
        if _DIGITS.sub("", group) != _DIGITS.sub("", name) and group.count("_") == name.count("_")
    ]
    return next(iter((*same, *typos)), None)


def _meant(key: str, own: Collection[str]) -> str | None:
    """The connection or privilege key that was meant. `timeout` and `ssh_keys` may well be data."""
    plain = key.lower().replace("-", "_")
    if plain in ELSEWHERE:
        return ELSEWHERE[plain]
    if plain.startswith(("su", "doas", "dzdo")):
        return f"_{plain}" if f"_{plain}" in own else None
    if not plain.startswith(("ssh", "_")):
        return None
    close = get_close_matches(plain, own, n=1, cutoff=DATA_KEY_SIMILARITY)
    return close[0] if close and plain != f"{close[0]}s" else None
