"""A run deletes the folder with keys that a killed run left, but not that of a running one."""

from __future__ import annotations

import fcntl
import os
import tempfile
from pathlib import Path

import pytest

from gpufleet.kube import private_folder as module
from gpufleet.kube.private_folder import FOLDER_PREFIX, private_folder


def test_only_folders_that_nobody_has_are_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    killed, alive, link = (
        tmp_path / f"{FOLDER_PREFIX}{name}" for name in ("killed", "alive", "link")
    )
    for folder in (killed, alive, tmp_path / "theirs"):
        folder.mkdir()
        (folder / "key").touch()
    link.symlink_to(tmp_path / "theirs")
    number = os.open(alive, os.O_RDONLY)
    fcntl.flock(number, fcntl.LOCK_EX)
    private_folder.cache_clear()
    monkeypatch.setattr(module, "MIN_SECONDS", 3600)
    new = private_folder()
    assert killed.exists(), "it may be one that is about to be locked"
    private_folder.cache_clear()
    monkeypatch.setattr(module, "MIN_SECONDS", -1)
    newer = private_folder()
    assert {path.name for path in tmp_path.iterdir()} == {
        alive.name, link.name, "theirs", new.name, newer.name,
    }  # fmt: skip
    assert (tmp_path / "theirs" / "key").exists()
    assert newer.stat().st_mode & 0o077 == 0
    os.close(number)
    private_folder.cache_clear()
