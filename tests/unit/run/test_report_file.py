"""The report's file: private from its first byte, whole or not there."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path

import pytest

from gpufleet.run.report import RunFacts, as_json
from gpufleet.run.report_file import JUNIT, ReportFile, is_junit
from gpufleet.verify.report import Report

NOW = datetime(2026, 1, 1, tzinfo=timezone.utc)
OURS = as_json([], RunFacts("prod.py", (), NOW, NOW, False, 0))
VERIFIED = json.dumps(Report({"gpu-1": {}}).as_dict())


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
    for old in (OURS, VERIFIED, ""):
        path.write_text(old)
        ReportFile(path).prepare()
        assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    "text", ['gpu_nodes = ["gpu-1"]\n', "{}", "[]", '{"hosts": ["a"]}', '{"hosts": {"a": {}}}',
             '{"hosts": {}}', "[" * 100_000, "\0\1"]
)  # fmt: skip
def test_a_file_that_is_no_report_stays(tmp_path: Path, text: str) -> None:
    path, link = tmp_path / "inventory.py", tmp_path / "link"
    path.write_text(text)
    link.symlink_to(path)
    for place in (path, link):
        with pytest.raises(FileExistsError, match="is not a gpufleet report"):
            ReportFile(place).prepare()
        with pytest.raises(FileExistsError, match="is not a JUnit file"):
            ReportFile(place, is_junit, JUNIT).prepare()
    assert path.read_text() == text
    assert sorted(os.listdir(tmp_path)) == ["inventory.py", "link"]


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    target, path = tmp_path / "target", tmp_path / "report.json"
    target.write_text(OURS)
    path.symlink_to(target)
    ReportFile(path).prepare()
    ReportFile(path).write("ours")
    assert target.read_text() == OURS
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


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        (b"", True),
        (b'<?xml version="1.0" encoding="utf-8"?><testsuites name="x"></testsuites>', True),
        (b"<testsuite tests='1'/>", True),
        (b"<notes/>", False),
        (b"<testsuitesque/>", False),
        (b"{}", False),
    ],
)
def test_which_files_are_results_of_tests(text: bytes, is_one: bool) -> None:
    assert is_junit(text) is is_one
