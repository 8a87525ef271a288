"""Files on this machine that only their owner can read."""

from __future__ import annotations

import fcntl
import os
import tempfile
from contextlib import suppress
from pathlib import Path


def write_private(path: Path, content: str | bytes) -> bool:
    """Write a file atomically with mode 0600. Returns False if the file was already the same.

    Creates missing folders, readable only by their owner. Raises OSError.
    """
    data = content.encode() if isinstance(content, str) else content
    if _is_private(path, data):
        return False
    make_private(path.parent)
    replace_file(path, data)
    return True


def replace_file(path: Path, data: bytes, mode: int = 0o600) -> None:
    """Write a file atomically. Raises OSError."""
    handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            os.fchmod(file.fileno(), mode)
        os.replace(temporary, path)
    except BaseException:  # an interrupt, too, leaves no part of a file
        with suppress(FileNotFoundError):
            os.unlink(temporary)
        raise


def make_private(folder: Path) -> None:
    """Create a folder and its missing parents, readable only by their owner. Raises OSError."""
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    for each in reversed(missing):
        each.mkdir(mode=0o700, exist_ok=True)


def _is_private(path: Path, data: bytes) -> bool:
    """True if the file has this content and can be read only by its owner."""
    try:
        return not path.stat().st_mode & 0o077 and path.read_bytes() == data
    except (FileNotFoundError, IsADirectoryError):
        return False


def lock_folder(path: Path) -> int:
    """Lock a folder until the returned descriptor is closed, or this process ends. Raises
    BlockingIOError if another process has it."""
    number = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(number)
        raise
    return number
