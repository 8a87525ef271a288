"""Files on this machine that their owner alone may read."""

from __future__ import annotations

import errno
import os
import pwd
import stat
import tempfile
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

from gpufleet.core.limits import MIB


def write_private(path: Path, text: str, *, durable: bool = False) -> bool:
    """Put a file in its place, whole or not at all, mode 0600; False if it was there already.

    Missing folders are created, for their owner alone. `durable`: it is on the disk when this
    returns. Raises OSError.
    """
    data = text.encode()
    if _is_private(path, data):
        return False
    created = make_private(path.parent)
    handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError:
        with suppress(FileNotFoundError):
            os.unlink(temporary)
        raise
    if durable:
        for folder in (path.parent, *(each.parent for each in created)):
            _put_on_disk(folder)
    return True


def make_private(folder: Path) -> list[Path]:
    """Create a folder and those above it that are missing, for their owner alone; which ones.
    Raises OSError."""
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    for each in reversed(missing):
        each.mkdir(mode=0o700, exist_ok=True)
    return missing


def why_not_of(path: Path, owners: Collection[int]) -> str:
    """Why a file or folder is none of these users, "" if it is; with "it" as its subject. Raises
    OSError."""
    owner = path.stat().st_uid
    return "" if owner in owners else f"it belongs to the user {user_name(owner)}"


def _is_private(path: Path, data: bytes) -> bool:
    """Whether a file is as it should be."""
    try:
        return not path.stat().st_mode & 0o077 and path.read_bytes() == data
    except (FileNotFoundError, IsADirectoryError):
        return False


def _put_on_disk(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # a file system without that
            raise
    finally:
        os.close(handle)


class Irregular(OSError):
    """A link, a pipe or a large file, where a file of moderate size was expected."""


def read_regular(path: Path, most: int) -> bytes:
    """A file that others may have put there: neither a link nor a pipe, at most so many bytes.
    Raises OSError, of these Irregular."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise Irregular("it is a link") from error
        raise
    with os.fdopen(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise Irregular("it is no regular file")
        data = file.read(most + 1)
    if len(data) > most:
        raise Irregular(f"it has more than {most // MIB} MiB")
    return data


def user_name(number: int) -> str:
    """With its number."""
    try:
        return f"{pwd.getpwuid(number).pw_name} ({number})"
    except KeyError:
        return str(number)
