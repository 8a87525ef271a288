"""Cached chart archives: used only if no other user could write to the folder."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from gpufleet.helm.operations import charts
from gpufleet.helm.operations.charts import chart_archive
from gpufleet.helm.operations.cluster import helm_cache
from gpufleet.helm.release import ChartSource, Release
from gpufleet.kube.private_folder import private_folder
from tests.cluster.tiny import archive

RELEASE = Release("one", "n", "tiny", "1.0.0", ChartSource("repository", "https://charts.example"))


@pytest.fixture
def fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The charts that were requested from the repository."""
    asked: list[str] = []
    data = Path(archive(tmp_path)).read_bytes()

    def fetch(release: Release, login: object) -> bytes:
        asked.append(release.chart)
        return data

    monkeypatch.setattr(charts, "archive_from_repository", fetch)
    return asked


def get(cache: Path) -> Path:
    return chart_archive(RELEASE, None, cache)  # type: ignore[arg-type]


def test_what_was_fetched_is_kept_for_this_user_alone(tmp_path: Path, fetched: list[str]) -> None:
    path = get(tmp_path / "cache")
    assert get(tmp_path / "cache") == path
    assert fetched == ["tiny"]
    for folder in (path.parent, path.parent.parent):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700


@pytest.mark.parametrize("what", ["archive", "folder", "folder around it"])
def test_what_others_may_write_is_fetched_again(
    tmp_path: Path, fetched: list[str], what: str
) -> None:
    path = get(tmp_path / "cache")
    place = {"archive": path, "folder": path.parent, "folder around it": path.parent.parent}[what]
    place.chmod(place.stat().st_mode | 0o020)
    assert get(tmp_path / "cache") == path
    assert fetched == ["tiny", "tiny"]
    assert get(tmp_path / "cache") == path
    assert fetched == ["tiny", "tiny"]


def test_where_no_cache_can_be_created_a_run_has_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    assert helm_cache() == tmp_path / "home/gpufleet"
    assert helm_cache().is_dir()
    (tmp_path / "home/gpufleet/charts").mkdir()
    with monkeypatch.context() as patch:  # a test may run as root, who may write everywhere
        patch.setattr(os, "access", lambda path, mode: "charts" not in str(path))
        assert helm_cache() == private_folder()
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert helm_cache() == private_folder()
