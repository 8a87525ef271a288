"""Compares versions by their numbers: 580.95.05 and 580.142, never as text."""

from __future__ import annotations

import re
from functools import lru_cache


@lru_cache(maxsize=4096)
def version_tuple(version: str) -> tuple[int, ...]:
    """The leading numbers of a version: "580.159.03" -> (580, 159, 3), "v1.27-rc" -> (1, 27).

    Text without a leading number gives an empty tuple, which is lower than every version. A part
    with more than nine digits is ignored: hosts choose the text, and int() refuses thousands.
    """
    found = re.match(r"v?(\d{1,9}(?!\d)(?:\.\d{1,9}(?!\d))*)", version)
    return tuple(int(part) for part in found[1].split(".")) if found else ()


def branch_of(version: str) -> int:
    """The branch of a driver version: 580 for "580.95.05"."""
    return version_tuple(version)[0]


def version_order(version: str) -> tuple[tuple[int, int, str], ...]:
    """Sort key for package versions and kernel releases. Numbers compare as numbers."""
    parts = re.findall(r"\d{1,9}|[a-zA-Z]+", version)  # int() refuses thousands of digits
    return tuple((1, int(part), "") if part.isdigit() else (0, 0, part) for part in parts)


def upstream_version(version: str) -> str:
    """A package version without epoch and revision: `3:580.95.05-1.el9` -> `580.95.05`."""
    version = version.split(":", 1)[-1]
    return version.rsplit("-", 1)[0] if "-" in version else version
