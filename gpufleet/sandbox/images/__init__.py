"""Images of the sandbox hosts: one root file system by mmdebstrap, a thin layer per image.

Both are named after the hash of what they are made from: a changed recipe makes a new image,
an unchanged one costs one look at the engine's list.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from gpufleet.sandbox.apt import MAIN, AptSources, machine_sources
from gpufleet.sandbox.engine import LABEL, Engine
from gpufleet.sandbox.locks import exclusive
from gpufleet.sandbox.process import run

RECIPES = Path(__file__).parent
PACKAGES = (
    "busybox-static ca-certificates containerd cpio curl dbus dkms dnf dnf-plugins-core docker.io "
    "file gcc gnupg gzip initramfs-tools iproute2 iptables kmod less libc6-dev lsof make openssh-server "
    "pciutils procps psmisc python3-minimal rpm runc sudo systemd systemd-sysv udev"
).split()

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class ImageStore:
    """Builds images when they are missing. `machine` is the folder of `machine.build`."""

    engine: Engine
    cache: Path
    machine: Path
    progress: Progress

    def image(self, name: str) -> str:
        """The engine's name of the image `name`, built first when it has to be."""
        script = (RECIPES / "common.sh").read_text() + (RECIPES / f"{name}.sh").read_text()
        base = f"localhost/gpufleet-base:{_base_version()}"
        tag = f"localhost/gpufleet-{name}:{_digest(base, script, *self._kernel())}"
        if self.engine.has_image(tag):
            return tag
        with exclusive(self.cache / "images", "build"):
            if not self.engine.has_image(tag):
                self._base(base)
                self._layer(base, tag, name, script)
        return tag

    def _kernel(self) -> list[str]:
        """What an image has of the simulated machine: its kernels, installed by these programs."""
        files = [self.machine / "install-kernel", self.machine / "dracut"]
        files += [path for path in (self.machine / "kernels").rglob("*") if path.is_file()]
        return [hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(files)]

    def _base(self, tag: str) -> None:
        if self.engine.has_image(tag):
            return
        archive = self.cache / "images" / f"base-{_base_version()}.tar"
        if not archive.exists():
            self.progress("building the base image (about a minute, once)")
            _bootstrap(machine_sources(), archive)
        self.progress("loading the base image")
        self.engine("import", "--change", f"LABEL {LABEL}.image=1", archive, tag)

    def _layer(self, base: str, tag: str, name: str, script: str) -> None:
        self.progress(f"building the image {name}")
        container = f"gpufleet-build-{name}"
        self.engine.remove(*[c for c in self.engine.containers("build") if c == container])
        labels = ["--name", container, "--label", f"{LABEL}=build", "--network", "none"]
        options = [*self.engine.limit_options(), "-v", f"{self.machine}:/usr/lib/sim:ro"]
        self.engine("run", *labels, *options, base, "/bin/bash", "-c", script, timeout=300)
        self.engine("commit", "-q", container, tag)
        self.engine.remove(container)

    def remove_stale(self, keep: set[str]) -> None:
        """Remove images of older recipes, those in `keep` and those in use excepted."""
        listed = self.engine("images", "--format", "{{.Repository}}:{{.Tag}}").stdout.split()
        for tag in listed:
            if tag.startswith("localhost/gpufleet-") and tag not in keep:
                self.engine("rmi", tag, check=False)


def _bootstrap(sources: AptSources, archive: Path) -> None:
    """A root file system of this machine's distribution, from its own apt sources."""
    partial = archive.with_suffix(".part")
    lines = "\n".join(sources.lines(MAIN[sources.distribution])) + "\n"
    options = ["--quiet", "--variant=minbase", "--format=tar", f"--include={','.join(PACKAGES)}"]
    options += ["--aptopt=APT::Install-Recommends false", "--dpkgopt=path-exclude=/usr/share/man/*"]
    run(["mmdebstrap", *options, sources.suite, partial, "-"], stdin=lines, timeout=1200)
    partial.replace(archive)


def _base_version() -> str:
    sources = machine_sources()
    return _digest(sources.distribution, sources.suite, *PACKAGES)


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:12]
