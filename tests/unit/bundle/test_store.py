"""Files arrive whole or not at all, and a second run keeps those that did."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpufleet.bundle.models import MANIFEST, SBOM, BundlePart
from gpufleet.bundle.operations.folder import (
    finish_bundle,
    read_bundle,
    read_digests,
    writing_bundle,
)
from gpufleet.bundle.operations.store import (
    WORK_FOLDER,
    WRITTEN,
    has_file,
    store_file,
    store_part,
    stored_parts,
)
from gpufleet.core.stopped import Stopped
from tests.unit.bundle.bundles import CONTENTS, file_of, make_bundle

PATH = "a/b/one.deb"
ONE = file_of(PATH, b"one")


def there(folder: Path) -> set[str]:
    found = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix() for path in found}


def test_a_file_arrives_in_pieces(tmp_path: Path) -> None:
    store_file(tmp_path, ONE, [b"o", b"", b"ne"])
    assert (tmp_path / PATH).read_bytes() == b"one"
    assert has_file(tmp_path, ONE)
    assert there(tmp_path) == {PATH, f"{WORK_FOLDER}/{WRITTEN}"}


@pytest.mark.parametrize("after", range(3))
def test_an_interrupted_file_is_not_there(tmp_path: Path, after: int) -> None:
    def pieces() -> Iterator[bytes]:
        yield from [b"o", b"n", b"e"][:after]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        store_file(tmp_path, ONE, pieces())
    assert there(tmp_path) == set()


@pytest.mark.parametrize("pieces", [[], [b"on"], [b"one", b"!"], [b"eno"]])
def test_a_file_with_another_digest_is_not_kept(tmp_path: Path, pieces: list[bytes]) -> None:
    with pytest.raises(Stopped) as stopped:
        store_file(tmp_path, ONE, pieces)
    assert [found.code for found in stopped.value.findings] == ["GF667"]
    assert there(tmp_path) == set()


@pytest.mark.parametrize("content", [b"", b"on", b"eno", b"one!"])
def test_a_damaged_file_counts_as_absent(tmp_path: Path, content: bytes) -> None:
    store_file(tmp_path, ONE, [b"one"])
    (tmp_path / PATH).write_bytes(content)
    assert not has_file(tmp_path, ONE)


def test_a_link_in_place_of_a_file_counts_as_absent(tmp_path: Path) -> None:
    (tmp_path / "one").write_bytes(b"one")
    (tmp_path / "a/b").mkdir(parents=True)
    (tmp_path / PATH).symlink_to(tmp_path / "one")
    assert not has_file(tmp_path, ONE)


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a file in the place of a folder")
    with pytest.raises(Stopped) as stopped:
        store_file(tmp_path, ONE, [b"one"])
    assert PATH in stopped.value.findings[0].message


def test_the_manifest_comes_last_and_names_every_file(tmp_path: Path) -> None:
    made = make_bundle(tmp_path)
    assert there(tmp_path) == {*CONTENTS, SBOM, MANIFEST}
    assert read_bundle(tmp_path) == made
    assert read_digests(tmp_path) == {file.path: file.sha256 for file in made.files}


def test_a_begun_bundle_has_no_manifest_until_it_is_finished(tmp_path: Path) -> None:
    make_bundle(tmp_path)
    with writing_bundle(tmp_path), pytest.raises(Stopped) as stopped:
        read_bundle(tmp_path)
    assert [found.code for found in stopped.value.findings] == ["GF671"]
    with writing_bundle(tmp_path):  # the interrupted command again
        assert set(CONTENTS) <= there(tmp_path)
        finish_bundle(tmp_path)
    assert not (tmp_path / WORK_FOLDER).exists()


def test_two_processes_do_not_write_one_bundle(tmp_path: Path) -> None:
    """Each would delete what the other one has collected. flock(2) locks per open file."""
    with writing_bundle(tmp_path):
        store_part(tmp_path, "host", BundlePart())
        with pytest.raises(Stopped, match="another process"), writing_bundle(tmp_path):
            pass
        assert len(list(stored_parts(tmp_path))) == 1
    with writing_bundle(tmp_path):
        assert list(stored_parts(tmp_path)) == []


def test_files_of_the_earlier_bundle_are_deleted_and_those_of_others_stay(tmp_path: Path) -> None:
    make_bundle(tmp_path)
    (tmp_path / "mine").write_text("x")
    make_bundle(tmp_path, {"c.example.com/two.deb": b"two"})
    assert there(tmp_path) == {"c.example.com/two.deb", SBOM, MANIFEST, "mine"}
    assert not (tmp_path / "a.example.com").exists()


def test_files_of_a_run_that_did_not_end_are_deleted_and_those_of_others_stay(
    tmp_path: Path,
) -> None:
    """`bundle verify` would report each of them."""
    with writing_bundle(tmp_path):
        store_file(tmp_path, ONE, [b"one"])
    (tmp_path / "a/mine").write_text("x")
    other = file_of("a/two.deb", b"two")
    with writing_bundle(tmp_path):
        store_file(tmp_path, other, [b"two"])
        finish_bundle(tmp_path, [BundlePart((other,))])
    assert there(tmp_path) == {"a/two.deb", "a/mine", SBOM, MANIFEST}


@pytest.mark.parametrize("name", ["letters", MANIFEST])
def test_a_folder_with_files_of_others_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("x")
    with pytest.raises(Stopped) as stopped, writing_bundle(tmp_path):
        pass
    assert [found.code for found in stopped.value.findings] == ["GF671"]
    assert os.listdir(tmp_path) == [name]
