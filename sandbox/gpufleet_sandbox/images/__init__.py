"""Images of the sandbox hosts: one root file system by mmdebstrap, a thin layer per image.

Both are named after the hash of what they are made from: a changed recipe makes a new image,
an unchanged one costs one look at the engine's list.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from gpufleet_sandbox.apt import MAIN, AptSources, machine_sources
from gpufleet_sandbox.engine import LABEL, Engine
from gpufleet_sandbox.errors import SandboxError, kinds
from gpufleet_sandbox.images import real
from gpufleet_sandbox.kinds import HostKind
from gpufleet_sandbox.locks import exclusive
from gpufleet_sandbox.process import run

RECIPES = Path(__file__).parent
PACKAGES = [
    *("systemd", "systemd-sysv", "udev", "dbus", "openssh-server", "sudo", "iproute2", "iptables"),
    *("procps", "psmisc", "lsof", "less", "file", "cpio", "curl", "ca-certificates", "gnupg"),
    *("kmod", "pciutils", "initramfs-tools", "dkms", "gcc", "libc6-dev", "make"),
    *("docker.io", "containerd", "runc", "busybox-static", "python3-minimal"),
    *("rpm", "dnf", "dnf-plugins-core"),
]

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Image:
    """What a host is started from. `is_real`: the distribution's own image, not the imitation."""

    tag: str
    is_real: bool


@dataclass(frozen=True, slots=True)
class ImageStore:
    """Builds images when they are missing. `machine` is the folder of `machine.build`.

    `source`: imitation, real (an error where it cannot be had), or auto (real where it can be had).
    """

    engine: Engine
    cache: Path
    machine: Path
    progress: Progress
    source: str = "auto"

    def image(self, kind: HostKind) -> Image:
        """The image for hosts of this kind, built first when it has to be."""
        if self.source != "imitation" and kind.image in real.REGISTRY:
            found = self._real(kind)
            if found:
                return Image(found, True)
        return Image(self._imitation(kind.image), False)

    def _imitation(self, name: str) -> str:
        script = (RECIPES / "common.sh").read_text() + (RECIPES / f"{name}.sh").read_text()
        base = f"localhost/gpufleet-base:{_base_version()}"
        tag = f"localhost/gpufleet-{name}:{_digest(base, script, *self._kernel())}"
        with exclusive(self.cache / "images", name, self.progress):
            if not self.engine.has_image(tag):
                build_base(self.engine, self.cache, self.progress)
                self._layer(base, tag, name, script, "none")
        return tag

    def _real(self, kind: HostKind) -> str:
        """The tag of the image on top of the real distribution; "" when the imitation has to do."""
        registry = real.Registry(self.engine, self.cache)
        script = real.script(kind.image, PACKAGES, RECIPES, kind.kernel)
        tag = f"localhost/gpufleet-real-{kind.image}:{_digest(script, *self._kernel())}"
        if self.engine.has_image(tag):
            return tag
        if self.source == "auto" and registry.failed_lately:
            return ""
        reason = registry.pull(kind.image)
        if not reason:
            try:
                self._layer(real.REGISTRY[kind.image], tag, kind.image, script, "host")
            except SandboxError as error:
                reason = error.finding.message
        if reason and self.source == "real":
            image = real.REGISTRY[kind.image]
            raise SandboxError(kinds.IMAGE_NOT_PULLED(image=image, reason=reason))
        if reason:
            self.progress(f"no image of the real {kind.image}, so its imitation: {reason}")
        return "" if reason else tag

    def _kernel(self) -> list[str]:
        """What an image has of the simulated machine: its kernels, installed by these programs."""
        files = [self.machine / "install-kernel", self.machine / "dracut"]
        files += [path for path in (self.machine / "kernels").rglob("*") if path.is_file()]
        return [hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(files)]

    def _layer(self, base: str, tag: str, name: str, script: str, network: str) -> None:
        self.progress(f"building the image {name}")
        container = f"gpufleet-build-{name}"
        self.engine.remove(*[c for c in self.engine.containers("build") if c == container])
        labels = ["--name", container, "--label", f"{LABEL}=build", "--network", network]
        options = [*self.engine.limit_options(), "-v", f"{self.machine}:/usr/lib/sim:ro"]
        self.engine("run", *labels, *options, base, "/bin/bash", "-c", script, timeout=900)
        self.engine("commit", "-q", container, tag)
        self.engine.remove(container)


def build_base(engine: Engine, cache: Path, progress: Progress) -> None:
    """The image that every imitation begins with; nothing of the simulated machine is in it."""
    tag = f"localhost/gpufleet-base:{_base_version()}"
    with exclusive(cache / "images", "base"):
        if engine.has_image(tag):
            return
        archive = cache / "images" / f"base-{_base_version()}.tar"
        if not archive.exists():
            progress("building the base image (about a minute, once)")
            _bootstrap(machine_sources(), archive)
        progress("loading the base image")
        engine("import", "--change", f"LABEL {LABEL}.image=1", archive, tag)


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
