"""Images that the objects of a release name, and their copies in a bundle."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest

from gpufleet.bundle.images import parse_image, read_image_manifest, rendered_images
from gpufleet.bundle.models import BundlePart
from gpufleet.bundle.operations.folder import finish_bundle, read_digests, writing_bundle
from gpufleet.bundle.operations.images import copy_images
from gpufleet.bundle.operations.serve import bundle_server

DIGEST = f"sha256:{'0' * 64}"
POD = {
    "spec": {
        "template": {
            "spec": {
                "initContainers": [{"name": "a", "image": "nvcr.io/nvidia/toolkit:v1"}],
                "containers": [
                    {
                        "name": "b",
                        "image": f"quay.io/x/operator:v2@{DIGEST}",
                        "args": ["--reloader=quay.io/x/reloader:v2", "--level=info", "--url=a.b/c"],
                    }
                ],
            }
        }
    }
}
POLICY = {
    "spec": {
        "driver": {"repository": "nvcr.io/nvidia", "image": "driver", "version": "580.95.05"},
        "validator": {"repository": "nvcr.io/nvidia", "image": "validator", "version": DIGEST},
        "dcgm": {"repository": "nvcr.io/nvidia", "image": ""},
        "vgpuManager": {"enabled": False, "image": "vgpu-manager", "manager": {"image": "a/b"}},
    }
}


def test_images_are_those_of_containers_operands_and_options() -> None:
    assert rendered_images([POD, POLICY, {"spec": {"image": "registry.k8s.io/pause:3.10"}}]) == (
        "nvcr.io/nvidia/driver:580.95.05",
        "nvcr.io/nvidia/toolkit:v1",
        f"nvcr.io/nvidia/validator@{DIGEST}",
        f"quay.io/x/operator:v2@{DIGEST}",
        "quay.io/x/reloader:v2",
        "registry.k8s.io/pause:3.10",
    )


@pytest.mark.parametrize("value", ["", "-x", "a b", "$(x)", "\x1b[1m", None, 3, ["x"]])
def test_what_is_no_image_is_left_out(value: Any) -> None:
    assert rendered_images([{"image": value}]) == ()


def test_an_image_without_skopeo_is_named_as_lacking(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with writing_bundle(tmp_path):
        part = copy_images(tmp_path, ["quay.io/x/y:1"])
    assert part.files == ()
    assert [each.what for each in part.lacking] == ["image quay.io/x/y:1"]


@pytest.mark.parametrize(
    ("image", "folder", "reference"),
    [
        ("registry.k8s.io/pause:3.10", "v2/registry.k8s.io/pause", "3.10"),
        ("busybox", "v2/docker.io/library/busybox", "latest"),
        ("docker.io/busybox:1", "v2/docker.io/library/busybox", "1"),
        ("index.docker.io/library/busybox", "v2/docker.io/library/busybox", "latest"),
        ("nvidia/cuda:12.5.0", "v2/docker.io/nvidia/cuda", "12.5.0"),
        ("localhost/x", "v2/localhost/x", "latest"),
        ("10.0.0.1:5000/a/b/c", "v2/10.0.0.1-5000/a/b/c", "latest"),
        (f"quay.io/x/y:v2@{DIGEST}", "v2/quay.io/x/y", DIGEST),
    ],
)
def test_names_are_completed_as_runtimes_do(image: str, folder: str, reference: str) -> None:
    name = parse_image(image)
    assert (name.folder, name.reference) == (folder, reference)


@pytest.mark.parametrize("data", [b"", b"[]", b'"x"', b"{", b'{"config": {}}', b'{"layers": 1}x'])
def test_what_is_no_manifest_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"manifest|JSON|Expecting|Extra"):
        read_image_manifest(data)


class Registry(BaseHTTPRequestHandler):
    """Serves one image by OCI's distribution protocol."""

    contents: ClassVar[dict[str, tuple[str, bytes]]] = {}  # end of the path -> media type, bytes
    asked: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        self.asked.append(self.path)
        known = self.contents.get(self.path.rpartition("/")[2])
        self.send_response(200 if known or self.path == "/v2/" else 404)
        kind, data = known or ("application/json", b"{}")
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(data)

    do_HEAD = do_GET

    def log_message(self, format: str, *given: Any) -> None:
        pass


OCI, DOCKER = "application/vnd.oci.image", "application/vnd.docker.distribution.manifest"
PLATFORMS = ("amd64", "arm64")


def digest_of(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def put(kind: str, data: bytes, *tags: str) -> dict[str, Any]:
    """Store a blob or a manifest in the registry; its descriptor."""
    for reference in (digest_of(data), *tags):
        Registry.contents[reference] = (kind, data)
    return {"mediaType": kind, "digest": digest_of(data), "size": len(data)}


def put_image(architecture: str, *tags: str) -> dict[str, Any]:
    """An image of one layer."""
    rootfs = {"type": "layers", "diff_ids": [digest_of(b"a layer")]}
    config = {"architecture": architecture, "os": "linux", "config": {}, "rootfs": rootfs}
    manifest = {
        "schemaVersion": 2,
        "mediaType": f"{OCI}.manifest.v1+json",
        "config": put(f"{OCI}.config.v1+json", json.dumps(config).encode()),
        "layers": [put(f"{OCI}.layer.v1.tar", b"a layer")],
    }
    return put(f"{OCI}.manifest.v1+json", json.dumps(manifest).encode(), *tags)


def put_list(tag: str) -> None:
    """An image for two platforms, by docker's list: other bytes than OCI's index would have."""
    listed = [
        {**put_image(each), "platform": {"architecture": each, "os": "linux"}} for each in PLATFORMS
    ]
    kind = f"{DOCKER}.list.v2+json"
    whole = {"schemaVersion": 2, "mediaType": kind, "manifests": listed}
    put(kind, json.dumps(whole).encode(), tag)


@contextmanager
def serving(server: ThreadingHTTPServer) -> Iterator[str]:
    """HOST:PORT of a server at work."""
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture
def registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """HOST:PORT of a registry whose repository x/y has an image `1`, and `both` for two
    platforms."""
    Registry.asked, Registry.contents = [], {}
    put_image("amd64", "1")
    put_list("both")
    settings = tmp_path / ".config/containers/registries.conf"
    settings.parent.mkdir(parents=True)
    monkeypatch.setenv("HOME", str(tmp_path))
    with serving(ThreadingHTTPServer(("127.0.0.1", 0), Registry)) as place:
        settings.write_text(f'[[registry]]\nlocation = "{place}"\ninsecure = true\n')
        yield place


needs_skopeo = pytest.mark.skipif(not shutil.which("skopeo"), reason="skopeo is not installed")


def downloads() -> list[str]:
    return [path for path in Registry.asked if "/blobs/" in path]


@needs_skopeo
def test_an_image_is_copied_once_with_its_digest(registry: str, tmp_path: Path) -> None:
    folder, image = tmp_path / "bundle", f"{registry}/x/y:1"
    with writing_bundle(folder):
        part = copy_images(folder, [image, f"{registry}/x/y:2"])
        assert [each.what for each in part.lacking] == [f"image {registry}/x/y:2"], part.lacking
        (top,) = (file for file in part.files if file.sort == "image")
        assert (top.name, top.version) == (image, digest_of(Registry.contents["1"][1]))
        assert top.path == f"{parse_image(image).folder}/manifests/1"
        assert {file.sort for file in part.files} == {"image", "layer"}
        Registry.asked = []
        assert copy_images(folder, [image]) == BundlePart(part.files)  # after an interruption
        assert not downloads()
        finish_bundle(folder, [part])
    layer = parse_image(image).folder + f"/blobs/{digest_of(b'a layer')}"
    (folder / layer).write_bytes(b"damage")
    with writing_bundle(folder):
        assert copy_images(folder, [image]) == BundlePart(part.files)
        assert downloads()


@needs_skopeo
@pytest.mark.parametrize("name", ["../../../x:1", "x/../../../y:1", "--help", "x y:1"])
def test_a_name_that_leads_elsewhere_is_not_copied(
    registry: str, tmp_path: Path, name: str
) -> None:
    """skopeo refuses it before a file is written."""
    folder = tmp_path / "bundle"
    with writing_bundle(folder):
        part = copy_images(folder, [f"{registry}/{name}"])
        assert (part.files, len(part.lacking)) == ((), 1)
        assert not list(tmp_path.rglob("manifests"))
    assert not Registry.asked


@needs_skopeo
def test_a_registry_that_fails_does_not_cost_the_earlier_copy(
    registry: str, tmp_path: Path
) -> None:
    folder, image = tmp_path / "bundle", f"{registry}/x/y:1"
    with writing_bundle(folder):
        first = copy_images(folder, [image])
        finish_bundle(folder, [first])
    Registry.contents.clear()
    with writing_bundle(folder):
        again = copy_images(folder, [image])
    assert again.files == first.files
    assert [each.what for each in again.lacking] == [f"a new copy of {image}, but an earlier one"]


@needs_skopeo
def test_layers_that_come_from_elsewhere_are_not_kept(registry: str, tmp_path: Path) -> None:
    """As those of Windows: skopeo downloads them from their URLs."""
    base = put(f"{OCI}.layer.nondistributable.v1.tar", b"windows")
    kind, data = Registry.contents["1"]
    manifest = json.loads(data)
    manifest["layers"].insert(0, {**base, "urls": [f"http://{registry}/{base['digest']}"]})
    put(kind, json.dumps(manifest).encode(), "1")
    folder = tmp_path / "bundle"
    with writing_bundle(folder):
        made = finish_bundle(folder, [copy_images(folder, [f"{registry}/x/y:1"])])
    assert read_digests(folder) == {file.path: file.sha256 for file in made.files}
    assert not list(folder.rglob(base["digest"]))


@needs_skopeo
@pytest.mark.claim(
    "The images of a bundle keep their digests, for every platform, and `bundle serve` is a "
    "registry that has them.",
    level=1,
)
def test_a_served_bundle_is_a_registry(registry: str, tmp_path: Path) -> None:
    folder, image = tmp_path / "bundle", f"{registry}/x/y:both"
    pinned = f"{registry}/x/y:1@{digest_of(Registry.contents['1'][1])}"
    with writing_bundle(folder):
        part = copy_images(folder, [image, pinned])
        assert len([file for file in part.files if "/manifests/" in file.path]) == 5
        made = finish_bundle(folder, [part])
    with serving(bundle_server(folder, made, "127.0.0.1", 0)) as place:
        for name in map(parse_image, (image, pinned)):
            mark = "@" if ":" in name.reference else ":"
            source = f"docker://{place}/{name.place}/{name.repository}{mark}{name.reference}"
            target = f"dir:{tmp_path}/copy-{len(name.reference)}"
            words = ["skopeo", "copy", "--all", "--preserve-digests", "--src-tls-verify=false"]
            subprocess.run([*words, source, target], check=True, capture_output=True)
            found = Path(target.removeprefix("dir:"), "manifest.json").read_bytes()
            assert found == Registry.contents[name.reference][1]
