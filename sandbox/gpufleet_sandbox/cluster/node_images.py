"""Images for real nodes, built on this machine: no registry is needed."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from gpufleet_sandbox.cluster.build import Progress, program
from gpufleet_sandbox.cluster.node_files import PAUSE
from gpufleet_sandbox.cluster.versions import versions
from gpufleet_sandbox.debian import unpacked
from gpufleet_sandbox.host import Host
from gpufleet_sandbox.locks import exclusive
from gpufleet_sandbox.paths import cache_dir

PROBE = "localhost/probe:sandbox"
APPLETS = ("sh", "ls", "sleep", "cat", "env")
PLUGIN = "nvidia-device-plugin"
ARCHIVE = "/var/tmp/image.tar"


@dataclass(frozen=True, slots=True)
class NodeImage:
    """An image; `fill` writes its files into a folder."""

    name: str
    fill: Callable[[Path], None]
    command: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)


def pause() -> NodeImage:
    """The pause image, which holds the namespaces of a pod."""
    return NodeImage(PAUSE, _busybox, ("/bin/sleep", "infinity"))


def probe() -> NodeImage:
    """An image with a shell, for pods of tests."""
    return NodeImage(PROBE, _busybox, ("/bin/sh",))


def device_plugin(progress: Progress) -> NodeImage:
    """NVIDIA's device plugin, under the image name in its chart."""
    built = program(PLUGIN, cache_dir() / "go", progress)

    def fill(root: Path) -> None:
        shutil.copytree(unpacked("libc6"), root, symlinks=True, dirs_exist_ok=True)
        target = root / "usr" / "bin" / PLUGIN
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(built, target)

    wanted = {"NVIDIA_VISIBLE_DEVICES": "all", "NVIDIA_DRIVER_CAPABILITIES": "utility"}
    return NodeImage(device_plugin_name(), fill, (f"/usr/bin/{PLUGIN}",), wanted)


def device_plugin_name() -> str:
    """The image name in the values of the chart of the same version."""
    return f"nvcr.io/nvidia/k8s-device-plugin:{versions().programs[PLUGIN].version}"


def load_image(image: NodeImage, host: Host) -> None:
    """Build the image and import it into the host's containerd, for its kubelet. The engine of
    this machine does not keep it."""
    with TemporaryDirectory(prefix="gpufleet-image-") as name:
        folder = Path(name)
        root = folder / "root"
        root.mkdir()
        image.fill(root)
        tree = shutil.make_archive(str(folder / "root"), "tar", root)
        changes = [f"ENTRYPOINT {json.dumps(image.command)}"]
        changes += [f"ENV {key}={value}" for key, value in image.environment.items()]
        flags = [word for change in changes for word in ("--change", change)]
        with exclusive(cache_dir() / "images", "import"):  # another process may need the name
            host.engine("import", *flags, tree, image.name)
            try:
                host.engine("save", "-o", folder / "image.tar", image.name)
            finally:
                host.engine("rmi", image.name)
        host.engine("cp", folder / "image.tar", f"{host.state.container}:{ARCHIVE}")
    host.run(f"ctr -n k8s.io images import {ARCHIVE} && rm {ARCHIVE}")


def _busybox(root: Path) -> None:
    folder = root / "bin"
    folder.mkdir()
    shutil.copy2(unpacked("busybox-static") / "bin" / "busybox", folder)
    for name in APPLETS:
        (folder / name).symlink_to("busybox")
