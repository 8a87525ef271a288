"""Parses collectors of GPU metrics, and TCP listeners."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import replace
from ipaddress import ip_address

from gpufleet.facts.model import Daemon, Listener
from gpufleet.facts.sections import split_records


def parse_collectors(lines: Sequence[str]) -> tuple[tuple[Daemon, ...], tuple[Listener, ...]]:
    """The collectors, lowest process id first, and the listening sockets.

    A process that only owns a socket is not a collector. Raises ValueError for a malformed line.
    """
    daemons: dict[int, Daemon] = {}
    collect: set[int] = set()
    sockets: dict[str, tuple[str, int]] = {}  # by inode
    owners: dict[str, int] = {}  # inode -> process id
    for word, rest in split_records(lines):
        first, _, second = rest.partition(" ")
        if word in ("collector", "process"):
            daemons[int(first)] = Daemon(int(first), second)
            if word == "collector":
                collect.add(int(first))
        elif word == "cgroup":
            daemons[int(first)] = replace(daemons[int(first)], cgroup=second)
        elif word == "listen":
            sockets[second] = _address(first)
        elif word == "owner":
            owners.setdefault(second, int(first))
        else:
            raise ValueError(f"unexpected line {word!r}")
    listeners = tuple(
        Listener(address, port, daemons.get(owners.get(inode, 0)))
        for inode, (address, port) in sockets.items()
    )
    return tuple(daemons[pid] for pid in sorted(collect)), listeners


def _address(text: str) -> tuple[str, int]:
    """`0100007F:24B8` of /proc/net/tcp -> ("127.0.0.1", 9400); its words are little-endian."""
    host, _, port = text.partition(":")
    words = [int(host[start : start + 8], 16) for start in range(0, len(host), 8)]
    packed = struct.pack(f"<{len(words)}I", *words)
    return str(ip_address(packed)), int(port, 16)
