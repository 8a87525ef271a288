"""Misspelt keys of pyinfra, which treats them as user data."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from difflib import get_close_matches

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


def near_misses(keys: Iterable[object], own: Collection[str]) -> list[Finding]:
    """A warning for each of a host's data `keys` that was meant to be one of pyinfra's `own`."""
    found = []
    for key in keys:
        meant = _meant(key, own) if isinstance(key, str) and key not in own else None
        if meant:
            found.append(NEAR_MISS(key=key, meant=meant))
    return found


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
