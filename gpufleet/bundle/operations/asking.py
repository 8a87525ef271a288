"""Facts about the packages of a bundle, read within the copy of a host's sources."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable

from pyinfra.api import FactBase, StringCommand

from gpufleet.core.limits import MIB
from gpufleet.host.asking import frame_command, framed_answer
from gpufleet.host.shell import script_command

PIECE_BYTES = 8 * MIB  # of a file on a host, in one answer


class ScriptLines(FactBase[list[str]]):
    """The lines of a script of this room."""

    def command(self, script: str, *arguments: str) -> StringCommand:
        return frame_command(script_command(f"bundle/{script}", *arguments))

    def process(self, output: Iterable[str]) -> list[str]:
        lines = framed_answer(output)
        return ["error the host did not respond"] if lines is None else lines


class FilePiece(FactBase[bytes]):
    """One piece of a file on a host; b"" after its end, or if it was cut off."""

    def command(self, path: str, number: int) -> StringCommand:
        how = (path, str(number), str(PIECE_BYTES))
        return frame_command(script_command("bundle/read_piece", *how))

    def process(self, output: Iterable[str]) -> bytes:
        try:
            return base64.b64decode("".join(framed_answer(output) or ()), validate=True)
        except binascii.Error:
            return b""
