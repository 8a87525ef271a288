"""Images as files: a client of registries pulls them from the mirror's server."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from gpufleet_sandbox.debian import unpacked
from gpufleet_sandbox.mirror.serve import Handler, Server
from gpufleet_sandbox.registry.images import MANIFEST, write_image

NAME = "registry.example/tools/busybox:1.0"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "root"
    (folder / "bin").mkdir(parents=True)
    program = unpacked("busybox-static") / "bin" / "busybox"
    (folder / "bin" / "busybox").write_bytes(program.read_bytes())
    (folder / "bin" / "busybox").chmod(0o755)
    (folder / "bin" / "sh").symlink_to("busybox")
    return folder


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    """The address of the mirror's server, which serves tmp_path/tree."""
    (tmp_path / "tree" / "v2").mkdir(parents=True)
    handler = partial(Handler, directory=str(tmp_path / "tree"), faults=None)
    with Server(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


def podman(*words: str) -> str:
    done = subprocess.run(["podman", *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_the_same_files_are_the_same_image(root: Path, tmp_path: Path) -> None:
    first = write_image(tmp_path / "a", NAME, root, ["/bin/sh"])
    (root / "bin" / "busybox").touch()
    assert write_image(tmp_path / "b", NAME, root, ["/bin/sh"]) == first
    assert write_image(tmp_path / "c", NAME, root, ["/bin/ls"]) != first
    place = tmp_path / "a" / "registry.example/tools/busybox/manifests"
    assert (place / "1.0").read_bytes() == (place / first).read_bytes()
    assert json.loads((place / "1.0").read_text())["mediaType"] == MANIFEST


def test_an_image_is_pulled_by_tag_and_digest(root: Path, tmp_path: Path, address: str) -> None:
    digest = write_image(tmp_path / "tree/v2", NAME, root, ["/bin/sh"], {"WHERE": "here"})
    repository = f"{address}/{NAME.rpartition(':')[0]}"
    for reference in (f"{repository}:1.0", f"{repository}@{digest}"):
        image = podman("pull", "--quiet", "--tls-verify=false", reference)
        try:
            found = json.loads(podman("image", "inspect", image))[0]["Config"]
            assert (found["Entrypoint"], found["Env"][-1]) == (["/bin/sh"], "WHERE=here")
        finally:
            podman("rmi", "--force", image)
    missing = ["podman", "pull", "--quiet", "--tls-verify=false", f"{repository}:2.0"]
    done = subprocess.run(missing, capture_output=True, text=True, check=False)
    assert done.returncode != 0
