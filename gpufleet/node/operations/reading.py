"""Reads what runs of gpufleet have left on a host, while an operation runs."""

from __future__ import annotations

import base64
from collections.abc import Iterable

from pyinfra.api import FactBase, StringCommand

from gpufleet.host.asking import answer, framed
from gpufleet.host.shell import script
from gpufleet.node.unfinished import Unfinished, parse_unfinished


class LeftUnfinished(FactBase[Unfinished]):
    """What unfinished runs left in gpufleet's folder."""

    default = Unfinished

    def command(self, home: str, roles: tuple[str, ...]) -> StringCommand:
        return framed(script("node/unfinished", home, *roles))

    def process(self, output: Iterable[str]) -> Unfinished:
        return parse_unfinished(answer(output) or ())


class RecordOnHost(FactBase[bytes]):
    """The bytes of the host's current record; empty if there is none."""

    @staticmethod
    def default() -> bytes:
        return b""

    def command(self, path: str) -> StringCommand:
        return framed(script("node/read_record", path))

    def process(self, output: Iterable[str]) -> bytes:
        return base64.b64decode("".join(answer(output) or ()))
