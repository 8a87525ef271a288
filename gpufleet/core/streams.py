"""Prepares the standard streams of this process."""

from __future__ import annotations

import io
import os
import sys
from contextlib import suppress
from typing import IO, Any

from gpufleet.core.secrets import hide_secrets, register_secrets_of_environment


class HidingStream:
    """A standard stream that prints *** for registered secrets.

    It has no `buffer`, because click writes to `buffer` if the locale is ASCII.
    """

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream

    def write(self, text: Any) -> int:
        # click's shell completion. It treats a stream that rejects bytes as binary.
        if text and isinstance(text, bytes):
            text = text.decode("utf-8", "replace")
        self._stream.write(hide_secrets(text))
        return len(text)

    def __getattr__(self, name: str) -> Any:
        if name == "buffer":
            raise AttributeError(name)
        if name == "writelines":
            return lambda lines: self.write("".join(lines))
        return getattr(self._stream, name)


def prepare_streams() -> None:
    """Make standard input and error usable for this process and its children.

    A closed stream is opened as /dev/null, or else the next opened file would take its number.
    Characters that the locale cannot encode are escaped, and registered secrets are hidden.
    """
    register_secrets_of_environment()
    for number, name, mode in ((0, "stdin", "r"), (2, "stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, _nothing(number, mode))
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if isinstance(stream, io.TextIOWrapper):
            with suppress(OSError):  # flushed before
                stream.reconfigure(errors="backslashreplace")
        if stream is not None and not isinstance(stream, HidingStream):
            setattr(sys, name, HidingStream(stream))


def _nothing(number: int, mode: str) -> IO[str]:
    handle = os.open(os.devnull, os.O_RDWR)
    os.dup2(handle, number)
    os.set_inheritable(number, True)
    if handle != number:
        os.close(handle)
    return open(number, mode, encoding="utf-8", closefd=False)
