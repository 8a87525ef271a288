"""The file of a run's metrics, for the textfile collector of node_exporter."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from pathlib import Path

from gpufleet.upgrade.metrics import PREFIX

READABLE = 0o644  # the collector is another user
SUFFIX = ".prom"  # the collector reads no other file
FIRST = f"# HELP {PREFIX}_".encode()  # bytes of a file of an earlier run


def refusal(path: Path) -> str:
    """Why a file is not to be replaced by metrics, or cannot be; "" if it may be."""
    if path.suffix != SUFFIX:
        return f"its name does not end in {SUFFIX}"
    if not path.parent.is_dir():
        return f"there is no folder {path.parent}"
    try:
        if not path.exists():
            return ""
        if not path.is_file():
            return "it is not a regular file"
        with path.open("rb") as file:
            start = file.read(len(FIRST))
    except OSError as error:
        return error.strerror or str(error)
    return "" if start in (b"", FIRST) else "the file there has no metrics of gpufleet upgrade"


def write_metrics(path: Path, text: str) -> None:
    """Put the file in its place, whole or not at all. Raises OSError, also where another program
    has written a file there since the start of the run."""
    if why := refusal(path):
        raise OSError(why)
    handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)
            os.fchmod(file.fileno(), READABLE)
        os.replace(temporary, path)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(temporary)
        raise
