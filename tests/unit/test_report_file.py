"""The report's file: private from its first byte, whole or not there."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpufleet.report_file import ReportFile


@pytest.fixture(autouse=True)
def _open_umask() -> Iterator[None]:
    old = os.umask(0)
    yield
    os.umask(old)


def test_only_its_owner_can_read_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    modes = []
    fdopen = os.fdopen

    def opened(handle: int, *arguments: str, **options: str) -> object:
        modes.append(os.fstat(handle).st_mode & 0o777)
        return fdopen(handle, *arguments, **options)  # type: ignore[call-overload]

    monkeypatch.setattr(os, "fdopen", opened)
    path = tmp_path / "report.json"
    path.write_text("old")
    path.chmod(0o666)
    ReportFile(path).write("new")
    assert modes == [0o600]
    assert (path.read_text(), path.stat().st_mode & 0o777) == ("new", 0o600)
    assert os.listdir(tmp_path) == ["report.json"]


def test_an_old_one_is_removed_first(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    path.write_text("old")
    ReportFile(path).prepare()
    assert os.listdir(tmp_path) == []


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    target, path = tmp_path / "target", tmp_path / "report.json"
    target.write_text("theirs")
    path.symlink_to(target)
    ReportFile(path).prepare()
    ReportFile(path).write("ours")
    assert target.read_text() == "theirs"
    assert not path.is_symlink()


def test_places_that_take_no_file_are_refused(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    for path in (tmp_path, tmp_path / "none" / "x", Path("/proc/x"), fifo, Path("/dev/null")):
        with pytest.raises(OSError, match=r"."):
            ReportFile(path).prepare()
    assert fifo.exists()


def test_a_full_disk_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(handle: int, *arguments: str, **options: str) -> object:
        os.close(handle)
        return open("/dev/full", "w")

    monkeypatch.setattr(os, "fdopen", full)
    with pytest.raises(OSError, match="No space left"):
        ReportFile(tmp_path / "report.json").write("x")
    assert os.listdir(tmp_path) == []
