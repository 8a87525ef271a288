"""Archives of images on the controller: which are read, and which are sent to a host."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from gpufleet.facts.model import ManagedFile
from gpufleet.kubernetes.archives import (
    ImageArchive,
    expand_patterns,
    normalize_image,
    read_archive,
)
from gpufleet.kubernetes.images import STORE, Present, pending_archives, room_for, with_archives
from gpufleet.kubernetes.record import KubernetesEntry
from gpufleet.node.settings import load_node_settings
from tests.unit.hosts import bare_host, record_of
from tests.unit.kubernetes.cluster_hosts import CONFIG, host

pytestmark = pytest.mark.claim("Image archives are checked before any host is changed.", level=1)

PAUSE = "registry.k8s.io/pause:3.10.2"
HASH = "a" * 64
DIGEST = f"sha256:{HASH}"
OTHER = f"sha256:{'b' * 64}"
NAME, TAG = "io.containerd.image.name", "org.opencontainers.image.ref.name"


def archive(path: Path, files: Mapping[str, Any], *, packed: bool = False) -> Path:
    """A tar archive of JSON files, and of a layer."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, value in {**files, "blobs/layer": b"x" * 2000}.items():
            data = value if isinstance(value, bytes) else json.dumps(value).encode()
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    data = buffer.getvalue()
    path.write_bytes(gzip.compress(data, mtime=0) if packed else data)
    return path


def oci(*annotations: dict[str, str], digest: str = DIGEST) -> dict[str, Any]:
    entries = [{"digest": digest, "annotations": each} for each in annotations]
    return {"index.json": {"manifests": entries}, "oci-layout": {}}


def docker(*tags: str, config: str = f"{HASH}.json") -> dict[str, Any]:
    return {"manifest.json": [{"Config": config, "RepoTags": list(tags), "Layers": []}]}


def named(name: str) -> dict[str, str]:
    return {NAME: name, TAG: "latest"}


WHOLE: list[tuple[dict[str, Any], set[str]]] = [
    (oci(named(PAUSE)), {PAUSE}),
    (oci({TAG: PAUSE}), {PAUSE}),
    ({f"./{name}": data for name, data in oci(named(PAUSE)).items()}, {PAUSE}),
    (docker("busybox:1", "lab/tool"), {"docker.io/library/busybox:1", "docker.io/lab/tool:latest"}),
    (docker(PAUSE, config=f"blobs/sha256/{HASH}"), {PAUSE}),
    ({**docker("old:1"), **oci(named(PAUSE))}, {PAUSE}),
]


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(("files", "images"), WHOLE)
def test_names_are_those_that_containerd_gives(
    tmp_path: Path, files: dict[str, Any], images: set[str], packed: bool
) -> None:
    path = archive(tmp_path / "images.tar", files, packed=packed)
    found = read_archive(str(path))
    assert {name for name, _ in found.images} == images
    assert {digest for _, digest in found.images} == {DIGEST}
    assert (found.size, found.compressed) == (path.stat().st_size, packed)


BROKEN: list[tuple[Any, str]] = [
    (b"no archive", "no tar archive"),
    (b"\x28\xb5\x2f\xfd rest", "compressed with zstd"),
    (b"\x1f\x8b rest", "no tar archive"),
    (oci({TAG: "latest"}), "no names"),
    (docker(), "no names"),
    ({"index.json": b"{"}, "no archive of images"),
    ({"index.json": {"manifests": [{"annotations": named(PAUSE), "digest": "1"}]}}, "no archive"),
    ({"index.json": ["manifests"]}, "no archive of images"),
    ({"index.json": json.dumps({"manifests": []}).encode() + b" " * 4 * 2**20}, "no archive of"),
    ({"readme": "nothing"}, "no archive of images"),
]


@pytest.mark.parametrize(("content", "problem"), BROKEN)
def test_what_is_no_archive_is_refused_with_the_reason(
    tmp_path: Path, content: Any, problem: str
) -> None:
    path = tmp_path / "images.tar"
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        archive(path, content)
    with pytest.raises(ValueError, match=problem):
        read_archive(str(path))


def test_an_archive_that_was_cut_off_is_refused(tmp_path: Path) -> None:
    path = archive(tmp_path / "images.tar.gz", oci(named(PAUSE)), packed=True)
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(ValueError, match="not a whole one"):
        read_archive(str(path))


def test_the_key_is_checked_before_any_host_is_read(tmp_path: Path) -> None:
    pattern = str(tmp_path / "*.tar")
    _, (missing,) = load_node_settings({"kubernetes_image_archives": [pattern]})
    assert "kubernetes_image_archives" in missing.message
    assert "no such file" in missing.message
    for name in ("b.tar", "a.tar"):
        archive(tmp_path / name, oci(named(PAUSE)))
    first = str(tmp_path / "a.tar")
    settings, problems = load_node_settings({"kubernetes_image_archives": [first, pattern]})
    assert not problems
    assert settings
    found = settings.by_role["kubernetes"].model_dump()
    assert found["image_archives"] == [first, str(tmp_path / "b.tar")]
    (tmp_path / "b.tar").write_bytes(b"")
    _, (broken,) = load_node_settings({"kubernetes_image_archives": [pattern]})
    assert "b.tar" in broken.message


def test_a_pattern_may_begin_at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    archive(tmp_path / "a.tar", oci(named(PAUSE)))
    assert expand_patterns(["~/*.tar"]) == [str(tmp_path / "a.tar")]


@pytest.mark.parametrize(
    ("name", "whole"),
    [
        ("busybox", "docker.io/library/busybox:latest"),
        ("lab/tool:1", "docker.io/lab/tool:1"),
        ("localhost/tool:1", "localhost/tool:1"),
        ("mirror:5000/tool", "mirror:5000/tool:latest"),
        (PAUSE, PAUSE),
    ],
)
def test_names_are_whole(name: str, whole: str) -> None:
    assert normalize_image(name) == whole


def test_a_host_gets_an_archive_once(tmp_path: Path) -> None:
    path = str(archive(tmp_path / "images.tar", oci(named(PAUSE))))
    (first,) = pending_archives([path], bare_host())
    recorded = record_of(kubernetes={"archives": [first.digest]})
    assert pending_archives([path], bare_host(provenance=recorded)) == ()
    archive(tmp_path / "images.tar", oci(named(PAUSE), digest=OTHER))
    (second,) = pending_archives([path], bare_host(provenance=recorded))
    assert second.digest != first.digest


def test_the_record_has_the_archives_of_today(tmp_path: Path) -> None:
    path = str(archive(tmp_path / "images.tar", oci(named(PAUSE))))
    digest = read_archive(path).digest
    assert with_archives([path], KubernetesEntry(archives=["old"])) == {"archives": [digest]}
    assert with_archives([], KubernetesEntry(archives=["old"])) == {"archives": []}
    assert with_archives([], KubernetesEntry()) == {}


@pytest.mark.parametrize(
    ("images", "blobs", "has"),
    [
        ({PAUSE: DIGEST}, (), True),
        ({PAUSE: OTHER}, (), False),
        ({PAUSE: OTHER}, (DIGEST,), True),  # docker's archives name the configuration
        ({}, (DIGEST,), False),
    ],
)
def test_what_containerd_has_is_not_sent(
    images: dict[str, str], blobs: tuple[str, ...], has: bool
) -> None:
    one = ImageArchive("images.tar", 1, "1", ((PAUSE, DIGEST),))
    assert Present(images, blobs).has(one) is has


@pytest.mark.parametrize(("free", "codes"), [(10**6, ["GF965"]), (10**8, [])])
def test_room_is_checked_before_anything_is_sent(free: int, codes: list[str]) -> None:
    archives = [ImageArchive("images.tar", 10**6, str(n), ((PAUSE, DIGEST),)) for n in range(3)]
    facts = bare_host(free_bytes={"/": 10**12, "/var": free})
    assert [each.code for each in room_for(archives, facts)] == codes
    assert list(room_for([], facts)) == []


@pytest.mark.parametrize(
    ("root", "var", "store", "codes"),
    [
        (STORE, 15, None, ["GF965"]),  # 10 MiB are uploaded, their images need 20 MiB
        (STORE, 15, 15, ["GF965"]),  # of the same file system
        (STORE, 15, 16, ["GF965"]),
        (STORE, 15, 21, []),
        (STORE, 5, 21, ["GF965"]),
        ("/data", 15, 1, []),
        ("/data", 5, 21, ["GF965"]),
    ],
)
def test_uploads_need_room_and_their_images_in_containerds_folder(
    root: str, var: int, store: int | None, codes: list[str]
) -> None:
    """Which another disk has, by a mount, a link or the file."""
    archives = [ImageArchive("a.tar", 10 * 2**20, "1", (), False)]
    config = {CONFIG: ManagedFile(CONFIG, f'version = 2\nroot = "{root}"\n')}
    free = {"/": 2**20, "/var": var * 2**20, **({STORE: store * 2**20} if store else {})}
    found = room_for(archives, host(files=config, free_bytes=free))
    assert [each.code for each in found] == codes


def test_a_compressed_archive_needs_more_room() -> None:
    sizes = [ImageArchive("a", 10, "1", (), packed).room for packed in (False, True)]
    assert sizes == [20, 60]


def test_the_digest_is_of_what_names_everything(tmp_path: Path) -> None:
    """The digest leaves out the layers, which would take long to read on each run."""
    path = archive(tmp_path / "images.tar", oci(named(PAUSE)))
    index = json.dumps(oci(named(PAUSE))["index.json"]).encode()
    expected = hashlib.sha256(index + str(path.stat().st_size).encode()).hexdigest()
    assert read_archive(str(path)).digest == expected
