"""Containers of distributions, with GPUs on their bus: images of a registry with the real
repositories or, without internet, images of the sandbox with its mirror."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from gpufleet_sandbox import machine
from gpufleet_sandbox.engine import Engine, find_engine
from gpufleet_sandbox.images import ImageStore
from gpufleet_sandbox.inventory import group_data
from gpufleet_sandbox.kinds import KINDS, MIRROR
from gpufleet_sandbox.mirror.serve import Handler, Server
from gpufleet_sandbox.paths import cache_dir
from gpufleet_sandbox.scenario import write_scenario

ROOT = Path(__file__).resolve().parents[2]
PLACES: dict[str, Any] = yaml.safe_load((Path(__file__).parent / "places.yaml").read_text())
REAL, IMITATED = "the real thing", "the sandbox"
PULL_SECONDS, PREPARE_SECONDS, RUN_SECONDS = 600, 900, 1800
INVENTORY = "gpu_nodes = ([{host!r}], {data!r})\ncontrol_plane = [{host!r}]\n"
VERSIONS = (
    r"dpkg-query -W -f '${Package} ${Version}\n' 2>/dev/null || "
    r"rpm -qa --qf '%{NAME} %{VERSION}\n'"
)


@dataclass(frozen=True, slots=True)
class Place:
    """A running container. `against`: REAL or IMITATED."""

    engine: Engine
    container: str
    against: str
    data: Mapping[str, Any]
    folder: Path

    def sh(self, command: str) -> str:
        done = self.engine.shell(
            self.container, command, check=True, timeout=PREPARE_SECONDS, stdin=None
        )
        return done.stdout

    def deploy(self, file: Path) -> dict[str, Any]:
        """The host's part of the report of a run that must succeed."""
        host, report = f"@{self.engine.name}/{self.container}", self.folder / "report.json"
        inventory = self.folder / "inventory.py"
        inventory.write_text(INVENTORY.format(host=host, data=dict(self.data)))
        done = subprocess.run(
            [Path(sys.executable).with_name("pyinfra"), "-y", inventory, file],
            cwd=ROOT, env={**os.environ, "GPUFLEET_REPORT": str(report)},
            capture_output=True, text=True, timeout=RUN_SECONDS, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        part: dict[str, Any] = json.loads(report.read_text())["hosts"][host]
        return part

    def versions(self) -> dict[str, str]:
        """Package -> version, as the package manager lists them."""
        return dict(line.split(" ", 1) for line in self.sh(VERSIONS).splitlines())


@contextmanager
def start_place(entry: Mapping[str, Any], folder: Path) -> Iterator[Place]:
    """Start the container of an entry of places.yaml. Skips the test without an image."""
    engine = find_engine()
    pulled = engine("pull", "-q", entry["image"], check=False, timeout=PULL_SECONDS)
    real, kind = pulled.returncode == 0, KINDS[entry.get("sandbox", "ubuntu2204")]
    mirror = cache_dir() / MIRROR
    if not real and not (entry.get("sandbox") and (mirror / "fingerprint").exists()):
        pytest.skip(f"no image: {pulled.stderr.strip().splitlines()[-1]}")
    write_scenario(folder / "scenario", kind, None if real else mirror)
    name = f"gpufleet-internet-{os.getpid()}"
    words = ["-d", "--name", name, "--stop-signal", "KILL", *engine.limit_options()]
    words += ["-v", f"{folder}/scenario/pci:/sys/bus/pci/devices:ro"]
    words += ["--security-opt", "label=disable"]  # SELinux: the folder has no label of containers
    with ExitStack() as stack:
        image, data = entry["image"], dict(entry.get("data", {}))
        if not real:
            address = stack.enter_context(_served(mirror / "tree"))
            words += ["--network", "host", "--add-host", f"{MIRROR}:{address}"]
            store = ImageStore(engine, cache_dir(), machine.build(cache_dir()), print, "imitation")
            image = store.image(kind).tag
            own = {"driver_branch": kind.driver_branch, **data, **entry.get("sandbox_data", {})}
            data = {**group_data(), **own}
        engine("run", *words, image, "sleep", "infinity")
        stack.callback(engine.remove, name)
        found = Place(engine, name, REAL if real else IMITATED, data, folder)
        if real:
            found.sh(entry.get("prepare", "true"))
        else:
            engine("cp", f"{folder}/scenario/root/.", f"{name}:/")
        yield found


@contextmanager
def _served(tree: Path) -> Iterator[str]:
    """The address of a server of the mirror's files on port 80, which no other run of tests has."""
    address = "127.77.{}.{}".format(*divmod(os.getpid() % 62500, 250))
    with Server((address, 80), partial(Handler, directory=str(tree), faults=None)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield address
        server.shutdown()
