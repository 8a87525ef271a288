"""Numbers of hosts as settings have them: 3, or "10%". Pure."""

from __future__ import annotations

import re

_PERCENT = re.compile(r"(\d{1,3})%")


def check_share(value: str | int) -> str | int:
    """Raises ValueError for what is neither a number of hosts nor a share of them."""
    if isinstance(value, bool):
        raise ValueError('must be a number of hosts, or a share such as "10%"')
    if isinstance(value, int):
        if value < 1:
            raise ValueError("must be at least 1")
        return value
    found = _PERCENT.fullmatch(value)
    if not found or not 1 <= int(found[1]) <= 100:
        raise ValueError('must be a number of hosts, or a share such as "10%"')
    return value


def hosts_of(share: str | int, total: int) -> int:
    """The number of hosts, of `total`: rounded down, and at least one."""
    if isinstance(share, int):
        return share
    return max(total * int(share.rstrip("%")) // 100, 1)
