"""Files for their owner alone, on this machine."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import pytest

from gpufleet.core.private_file import why_not_of, write_private


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


def test_whose_a_folder_is(tmp_path: Path) -> None:
    assert why_not_of(tmp_path, {os.geteuid()}) == ""
    assert why_not_of(tmp_path, set()).startswith("it belongs to the user ")


@pytest.mark.parametrize("number", [errno.EINVAL, errno.EIO])
def test_a_file_system_may_keep_folders_in_its_own_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """But for an error of the disk."""

    def refuse(handle: int) -> None:
        if stat.S_ISDIR(os.fstat(handle).st_mode):
            raise OSError(number, "no")

    monkeypatch.setattr(os, "fsync", refuse)
    if number == errno.EINVAL:
        assert write_private(tmp_path / "a", "x", durable=True)
        return
    with pytest.raises(OSError, match="no"):
        write_private(tmp_path / "a", "x", durable=True)


def test_a_failure_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError("refused")

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(PermissionError):
        write_private(tmp_path / "admin.conf", "secret\n")
    assert list(tmp_path.iterdir()) == []
