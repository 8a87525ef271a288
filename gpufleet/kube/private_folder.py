"""A folder for keys and kubeconfigs of this process."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
import time
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from gpufleet.core.private_file import lock_folder

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
                lock_folder(left)
                shutil.rmtree(left)
    folder = Path(tempfile.mkdtemp(prefix=FOLDER_PREFIX))  # mode 0700
    lock_folder(folder)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
