"""A folder for keys and kubeconfigs of this process."""

from __future__ import annotations

import atexit
import fcntl
import os
import shutil
import tempfile
import time
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

FOLDER_PREFIX = "gpufleet-kube-"
MIN_SECONDS = 10  # between a folder's creation and its lock


@lru_cache(maxsize=1)
def private_folder() -> Path:
    """A folder that only this user can access, removed when the process ends. The next process
    removes the folder of a killed one. It is locked while its process lives."""
    parent = Path(tempfile.gettempdir())
    for left in parent.glob(f"{FOLDER_PREFIX}*"):
        with suppress(OSError):  # another user's, a living process's, or already removed
            about = left.lstat()
            if about.st_uid == os.geteuid() and time.time() - about.st_ctime > MIN_SECONDS:
                _lock_folder(left)
                shutil.rmtree(left)
    folder = Path(tempfile.mkdtemp(prefix=FOLDER_PREFIX))  # mode 0700
    _lock_folder(folder)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _lock_folder(path: Path) -> None:
    """Lock a folder until this process ends. Raises BlockingIOError if another process has it."""
    number = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
