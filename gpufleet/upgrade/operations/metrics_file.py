"""The file of a run's metrics, for the textfile collector of node_exporter."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from pathlib import Path

READABLE = 0o644  # the collector is another user


def write_metrics(path: Path, text: str) -> None:
    """Put the file in its place, whole or not at all. Raises OSError."""
    handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            os.fchmod(file.fileno(), READABLE)
        os.replace(temporary, path)
    except OSError:
        with suppress(FileNotFoundError):
            os.unlink(temporary)
        raise
