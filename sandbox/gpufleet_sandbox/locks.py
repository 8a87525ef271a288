"""File locks for builds in the cache: one process at a time."""

from __future__ import annotations

import fcntl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def exclusive(
    folder: Path, name: str, progress: Callable[[str], None] | None = None
) -> Iterator[None]:
    """Hold the lock `name` in `folder`, which is created if missing. Waits while another process
    holds it, with a message to `progress`."""
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / f".{name}.lock", "w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if progress is not None:
                progress(f"waiting for another process that holds {handle.name}")
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
