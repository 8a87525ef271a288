"""Images that the objects of a release name, and their copies in a bundle."""

from __future__ import annotations

import hashlib
import json
import shutil
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest

from gpufleet.bundle.images import image_path, rendered_images
from gpufleet.bundle.models import BundlePart
from gpufleet.bundle.operations.folder import finish_bundle, writing_bundle
from gpufleet.bundle.operations.images import copy_images
from gpufleet.kubernetes.archives import read_archive

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


def blob(kind: str, data: bytes) -> dict[str, Any]:
    return {
        "mediaType": f"application/vnd.oci.image.{kind}",
        "digest": f"sha256:{hashlib.sha256(data).hexdigest()}",
        "size": len(data),
    }


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


@pytest.fixture
def registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """HOST:PORT of a registry that has x/y:1."""
    config = json.dumps({"architecture": "amd64", "os": "linux", "config": {},
                         "rootfs": {"type": "layers", "diff_ids": []}}).encode()  # fmt: skip
    manifest = {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
                "config": blob("config.v1+json", config), "layers": []}  # fmt: skip
    text = json.dumps(manifest).encode()
    kind = manifest["mediaType"]
    Registry.asked = []
    Registry.contents = {
        "1": (str(kind), text),
        f"sha256:{hashlib.sha256(text).hexdigest()}": (str(kind), text),
        f"sha256:{hashlib.sha256(config).hexdigest()}": ("application/octet-stream", config),
    }
    server = ThreadingHTTPServer(("127.0.0.1", 0), Registry)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    place = f"127.0.0.1:{server.server_port}"
    settings = tmp_path / ".config/containers/registries.conf"
    settings.parent.mkdir(parents=True)
    settings.write_text(f'[[registry]]\nlocation = "{place}"\ninsecure = true\n')
    monkeypatch.setenv("HOME", str(tmp_path))
    yield place
    server.shutdown()
    server.server_close()


@pytest.mark.skipif(not shutil.which("skopeo"), reason="skopeo is not installed")
def test_skopeo_copies_an_image_once(registry: str, tmp_path: Path) -> None:
    folder, image = tmp_path / "bundle", f"{registry}/x/y:1"
    with writing_bundle(folder):
        part = copy_images(folder, [image, f"{registry}/x/y:2"])
        assert [each.what for each in part.lacking] == [f"image {registry}/x/y:2"], part.lacking
        (file,) = part.files
        assert file.path == image_path(image)
        assert file.version in Registry.contents
        archive = read_archive(str(folder / file.path))
        assert [name for name, _ in archive.images] == [image]
        finish_bundle(folder, [part])
    with writing_bundle(folder):
        Registry.asked = []
        assert copy_images(folder, [image]) == BundlePart((file,))
        assert not any("/blobs/" in path for path in Registry.asked)
