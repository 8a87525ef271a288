"""Finds notices in the output of scripts: lines that become findings of the host."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from gpufleet.core.findings import Finding
from gpufleet.host.findings import EXTRA_FAILED, RELOAD_WAITS

_WAITS = re.compile(r"reload waits ([\w@.-]+)")  # printed by units.sh
_FAILED = re.compile(r"extra failed ([a-z_]+) ([\w@./-]+): (.*)")  # printed by prelude.sh


def reload_waits(unit: str) -> Finding:
    """The finding about a unit with a file that systemd has not read yet."""
    return RELOAD_WAITS(unit=unit.removesuffix(".service"))


def parse_notices(lines: Iterable[str]) -> Iterator[Finding]:
    """The findings in a script's output."""
    for line in lines:
        if found := _WAITS.fullmatch(line):
            yield reload_waits(found[1])
        elif found := _FAILED.fullmatch(line):
            yield EXTRA_FAILED(key=found[1], what=found[2], why=found[3] or "without a message")
