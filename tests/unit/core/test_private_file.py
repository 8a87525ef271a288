"""Files for their owner alone, on this machine."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gpufleet.core.private_file import write_private


def test_a_new_file_is_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "access" / "admin.conf"
    assert write_private(path, "secret\n")
    assert path.read_text() == "secret\n"
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700


def test_the_same_content_is_not_written_again(tmp_path: Path) -> None:
    path = tmp_path / "admin.conf"
    write_private(path, "secret\n")
    before = path.stat()
    assert not write_private(path, "secret\n")
    assert path.stat().st_ino == before.st_ino


def test_a_file_that_others_can_read_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "admin.conf"
    path.write_text("secret\n")
    path.chmod(0o644)
    assert write_private(path, "secret\n")
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_link_is_replaced_and_its_target_stays(tmp_path: Path) -> None:
    target = tmp_path / "other"
    target.write_text("theirs\n")
    path = tmp_path / "admin.conf"
    path.symlink_to(target)
    write_private(path, "secret\n")
    assert target.read_text() == "theirs\n"
    assert not path.is_symlink()


def test_a_file_that_is_no_text_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "admin.conf"
    path.touch(0o600)
    path.write_bytes(b"\xff\xfe")
    assert write_private(path, "secret\n")
    assert path.read_text() == "secret\n"


def test_a_failure_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError("refused")

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(PermissionError):
        write_private(tmp_path / "admin.conf", "secret\n")
    assert list(tmp_path.iterdir()) == []
