"""The standard streams of this process, whatever it was started with."""

from __future__ import annotations

import io
import os
import sys
from contextlib import suppress
from typing import IO


def prepare_streams() -> None:
    """Make standard input and error usable for this process and those that it starts.

    Where one was closed, it leads to /dev/null: else the next file that is opened takes its place.
    What the encoding of a locale does not have is escaped: it is no reason to end.
    """
    for number, name, mode in ((0, "stdin", "r"), (2, "stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, _nothing(number, mode))
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            with suppress(OSError):  # it is flushed before
                stream.reconfigure(errors="backslashreplace")


def _nothing(number: int, mode: str) -> IO[str]:
    handle = os.open(os.devnull, os.O_RDWR)
    os.dup2(handle, number)
    os.set_inheritable(number, True)
    if handle != number:
        os.close(handle)
    return open(number, mode, encoding="utf-8", closefd=False)
