"""The file of the report is private from its first byte, and complete or absent."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path

import pytest

from gpufleet.core.stopped import Stopped
from gpufleet.run.report import RunFacts, report_json
from gpufleet.run.report_file import JUNIT, REPORT_FILE, prepare_file, write_file
from gpufleet.verify.report import Report

NOW = datetime(2026, 1, 1, tzinfo=timezone.utc)
OURS = report_json([], RunFacts("prod.py", (), NOW, NOW, False, 0))
VERIFIED = json.dumps(Report({"gpu-1": {}}).as_dict())


@pytest.fixture(autouse=True)
def _open_umask() -> Iterator[None]:
    old = os.umask(0)
    yield
    os.umask(old)


def test_only_its_owner_can_read_it(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    path.write_text("old")
    path.chmod(0o666)
    assert write_file(path, lambda: "new")
    assert (path.read_text(), path.stat().st_mode & 0o777) == ("new", 0o600)
    assert os.listdir(tmp_path) == ["report.json"]


def test_an_old_one_is_removed_first(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    for old in (OURS, VERIFIED, ""):
        path.write_text(old)
        assert prepare_file(str(path), "--json", REPORT_FILE, keep=True) == path
        assert path.read_text() == old
        prepare_file(str(path), "--json", REPORT_FILE)
        assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("text", ['gpu_nodes = ["gpu-1"]\n', "{}", '{"hosts": {"a": {}}}', "\0\1"])
def test_a_file_that_is_no_report_stays(tmp_path: Path, text: str) -> None:
    path, link = tmp_path / "inventory.py", tmp_path / "link"
    path.write_text(text)
    link.symlink_to(path)
    for place in (path, link):
        for kind in (REPORT_FILE, JUNIT):
            with pytest.raises(Stopped, match=f"GF001.*is not {kind.name}"):
                prepare_file(str(place), "--json", kind)
    assert path.read_text() == text
    assert sorted(os.listdir(tmp_path)) == ["inventory.py", "link"]


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    target, path = tmp_path / "target", tmp_path / "report.json"
    target.write_text(OURS)
    path.symlink_to(target)
    prepare_file(str(path), "--json", REPORT_FILE)
    write_file(path, lambda: "ours")
    assert target.read_text() == OURS
    assert not path.is_symlink()


def test_places_that_take_no_file_are_refused(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    for path in (tmp_path, tmp_path / "none" / "x", Path("/proc/x"), fifo, Path("/dev/null")):
        with pytest.raises(Stopped, match="GF001"):
            prepare_file(str(path), "--json", REPORT_FILE)
    assert fifo.exists()
