"""Images of the sandbox hosts: one root file system by mmdebstrap, a thin layer per image.

Tags contain the hash of the recipe: a changed recipe builds a new image, and an unchanged one only
checks that the image exists.
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
# No man page, document, translation, or fsync of each file: the build takes a fifth less, and a
# host need not survive a crash of this machine.
OPTIONS = [
    *("--variant=minbase", f"--include={','.join(PACKAGES)}"),
    *("--aptopt=APT::Install-Recommends false", "--dpkgopt=force-unsafe-io"),
    *("--dpkgopt=path-exclude=/usr/share/man/*", "--dpkgopt=path-exclude=/usr/share/doc/*"),
    *("--dpkgopt=path-exclude=/usr/share/locale/*", "--dpkgopt=path-exclude=/usr/bin/*lto-dump*"),
]

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Image:
    """The image of a host. `is_real`: the distribution's official image, not the imitation."""

    tag: str
    is_real: bool


@dataclass(frozen=True, slots=True)
class ImageStore:
    """Builds missing images. `machine`: the folder of `machine.build`.

    `source`: imitation, real (an error if not available), or auto (real if available).
    """

    engine: Engine
    cache: Path
    machine: Path
    progress: Progress
    source: str = "auto"

    def image(self, kind: HostKind) -> Image:
        """The image for hosts of this kind; builds it if missing."""
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
        """The tag of the image based on the real distribution; "" to use the imitation."""
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
            self.progress(f"using the imitation of {kind.image}, no real image: {reason}")
        return "" if reason else tag

    def _kernel(self) -> list[str]:
        """Hashes of the parts of the simulated machine in an image: its kernels and installers."""
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


def build_base(engine: Engine, cache: Path, progress: Progress) -> str:
    """Build the base of every imitation, and return its tag; it has no parts of the simulated
    machine."""
    tag = f"localhost/gpufleet-base:{_base_version()}"
    with exclusive(cache / "images", "base"):
        if engine.has_image(tag):
            return tag
        archive = cache / "images" / f"base-{_base_version()}.tar"
        if not archive.exists():
            progress("building the base image (about a minute, once)")
            _bootstrap(machine_sources(), archive)
        progress("loading the base image")
        engine("import", "--change", f"LABEL {LABEL}.image=1", archive, tag)
    return tag


def _bootstrap(sources: AptSources, archive: Path) -> None:
    """Build a root file system of this machine's distribution from its apt sources."""
    partial = archive.with_suffix(".part")
    lines = "\n".join(sources.lines(MAIN[sources.distribution])) + "\n"
    command = ["mmdebstrap", "--quiet", "--format=tar", *OPTIONS, sources.suite, str(partial), "-"]
    run(command, stdin=lines, timeout=1200)
    partial.replace(archive)


def _base_version() -> str:
    sources = machine_sources()
    return _digest(sources.distribution, sources.suite, *OPTIONS)


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:12]
