"""Writes the files of one cluster into a repository, and deletes those that it no longer has."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from gpufleet.core.findings import Finding
from gpufleet.gitops import findings
from gpufleet.gitops.render import Files
from gpufleet.gitops.yaml_text import FILE_MARK

MARK_BYTES = 200  # of a file: its first line has gpufleet's mark


def write_cluster(folder: Path, files: Files) -> tuple[int, list[Finding]]:
    """Write the files that differ, and delete marked files that are not in `files`. Returns the
    number of changed files, and the blockers. Nothing is changed if a file without gpufleet's mark
    is in the way."""
    try:
        return _write(folder, files)
    except OSError as error:
        why = error.strerror or str(error)
        return 0, [findings.FILE_NOT_WRITTEN(path=error.filename or folder, why=why)]


def _write(folder: Path, files: Files) -> tuple[int, list[Finding]]:
    """Raises OSError."""
    wanted = {folder / name: text.encode() for name, text in files.items()}
    there = [path for path in sorted(wanted) if path.is_symlink() or path.exists()]
    if foreign := [path for path in there if not _is_marked(path)]:
        return 0, [findings.FILE_OF_OTHERS(path=path) for path in foreign]
    stale = [path for path in _marked(folder) if path not in wanted]
    changed = {path: data for path, data in wanted.items() if not _has(path, data)}
    for path, data in changed.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    for path in stale:
        path.unlink()
    return len(changed) + len(stale), []


def _marked(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.rglob("*")):
        if _is_marked(path):
            yield path


def _is_marked(path: Path) -> bool:
    if path.is_symlink() or not path.is_file():
        return False
    with path.open("rb") as file:
        return FILE_MARK.encode() in file.readline(MARK_BYTES)


def _has(path: Path, data: bytes) -> bool:
    return path.is_file() and path.read_bytes() == data
