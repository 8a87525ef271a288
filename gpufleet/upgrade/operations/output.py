"""What a program printed, for people."""

from __future__ import annotations

import os
import re
from typing import BinaryIO

from gpufleet.core.secrets import hide_secrets
from gpufleet.core.visible import one_line

READ = 64 * 1024  # bytes
TOO_LONG = b"a line that is too long to be shown"


def end_of(output: BinaryIO, most: int) -> str:
    """The end of an output, at most so many characters, on one line and without secrets; "" where
    there is none.

    Only its end is read, from the beginning of a line: part of one may be part of a secret.
    """
    skipped = max(output.seek(0, os.SEEK_END) - READ, 0)
    output.seek(max(skipped - 1, 0))
    data = output.read(READ + 1)
    if skipped:
        _, *lines = re.split(rb"[\r\n]", data, maxsplit=1)
        data = lines[0] if lines and lines[0].strip() else TOO_LONG
    text = hide_secrets(data.decode("utf-8", "replace"))
    return one_line(" ".join(text.split()))[-most:]
