"""The mirror in the cache: built once, rebuilt if damaged; concurrent exports of keys."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from gpufleet_sandbox.errors import SandboxError
from gpufleet_sandbox.mirror import builder
from gpufleet_sandbox.mirror.signing import KeyRing

FILES = {"a/Packages": b"one\n", "a/key.pub": b"two\n"}


@pytest.fixture
def builds(tmp_path: Path, ring: KeyRing, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """An entry for each build of the tree; a build writes FILES."""
    done: list[str] = []

    def write(*words: Any) -> None:
        done.append("built")
        for name, content in FILES.items():
            (tmp_path / "mirror/tree" / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / "mirror/tree" / name).write_bytes(content)

    monkeypatch.setattr(builder, "_build", write)
    monkeypatch.setattr(builder, "build_machine", lambda cache: cache / "machine")
    monkeypatch.setattr(builder, "key_ring", lambda home: ring)
    monkeypatch.setattr(builder, "toolkit_programs", lambda version, *_: tmp_path / version)
    return done


DAMAGES: dict[str, Callable[[Path], object]] = {
    "emptied": lambda path: path.write_bytes(b""),
    "truncated": lambda path: path.write_bytes(b"o"),
    "missing": lambda path: path.unlink(),
}


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("name", FILES)
def test_a_damaged_tree_is_built_again(
    tmp_path: Path, builds: list[str], name: str, damage: str
) -> None:
    tree = builder.build(tmp_path, print)
    builder.build(tmp_path, print)
    assert len(builds) == 1
    DAMAGES[damage](tree / name)
    builder.build(tmp_path, print)
    assert len(builds) == 2
    assert (tree / name).read_bytes() == FILES[name]


def test_a_tree_with_an_empty_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "Packages").write_text("one")
    builder._reject_empty_files(tmp_path)
    (tmp_path / "key.pub").touch()
    with pytest.raises(SandboxError, match=r"GF602.*key\.pub"):
        builder._reject_empty_files(tmp_path)


def test_threads_get_complete_keys(ring: KeyRing) -> None:
    complete = ring.public("vendor")
    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(ring.public, ["vendor"] * 48)) == {complete}
