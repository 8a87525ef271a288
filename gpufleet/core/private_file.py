"""Files on this machine that their owner alone may read."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from pathlib import Path


def write_private(path: Path, text: str) -> bool:
    """Put a file in its place, whole or not at all, mode 0600; False if it was there already.

    Missing folders are created, for their owner alone. Raises OSError.
    """
    if path.is_file() and not path.stat().st_mode & 0o077 and path.read_text("utf-8") == text:
        return False
    for folder in reversed([each for each in path.parents if not each.exists()]):
        folder.mkdir(mode=0o700, exist_ok=True)
    handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(temporary, path)
    except OSError:
        with suppress(FileNotFoundError):
            os.unlink(temporary)
        raise
    return True
