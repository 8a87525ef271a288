"""One builder at a time: what is built once in the cache is guarded by a file lock."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def exclusive(folder: Path, name: str) -> Iterator[None]:
    """Hold the lock `name` in `folder` (made when missing); waits for another process's."""
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / f".{name}.lock", "w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
