"""Contents of the imitation packages: files from `files/`, and small compiled programs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import as_file, files
from pathlib import Path
from typing import Literal

from gpufleet_sandbox.mirror.model import File
from gpufleet_sandbox.process import run

Format = Literal["deb", "rpm"]
LIBRARY_DIRS = {"deb": "/usr/lib/x86_64-linux-gnu", "rpm": "/usr/lib64"}
MODPROBE = {
    "deb": ("/usr/lib/modprobe.d/nvidia-graphics-drivers.conf", "nvidia-graphics-drivers.conf"),
    "rpm": ("/usr/lib/modprobe.d/nvidia.conf", "nvidia-rhel.conf"),
}
LICENSES = {"open": "Dual MIT/GPL", "proprietary": "NVIDIA"}
UNITS = "/usr/lib/systemd/system"


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a package's content; a package has several parts."""

    files: Mapping[str, File] = field(default_factory=dict)
    links: Mapping[str, str] = field(default_factory=dict)
    scripts: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Driver:
    """Parameters of the content of a driver package."""

    format: Format
    version: str
    modules: str  # open, proprietary
    work: Path  # for compiled programs
    nvidia_smi: Path

    @property
    def dkms_name(self) -> str:
        """rpm: the open modules are named nvidia-open before 570 (reference: EKS AMI)."""
        older = int(self.version.partition(".")[0]) < 570
        own_name = self.format == "rpm" and self.modules == "open" and older
        return "nvidia-open" if own_name else "nvidia"


def text(name: str, **values: str) -> str:
    """A file of `files/` with its @NAME@ placeholders filled in."""
    content = (files(__package__) / "files" / name).read_text()
    for key, value in values.items():
        content = content.replace(f"@{key}@", value)
    return content


@cache
def program(name: str, version: str, work: Path, *, static: bool = False) -> Path:
    """Compile files/daemons/`name`.c for one version; `static`: without shared libraries."""
    target = work / f"{name}-{version}{'-static' if static else ''}"
    options = ["-static"] if static else []
    with as_file(files(__package__) / "files" / "daemons" / f"{name}.c") as source:
        run(["gcc", "-O1", *options, f'-DVERSION="{version}"', "-o", target, source])
    return target


@cache
def stub_library(soname: str, work: Path) -> Path:
    """An empty shared library that dlopen and ldconfig accept."""
    target = work / soname
    run(["gcc", "-shared", f"-Wl,-soname,{soname}", "-x", "c", "-o", target, "/dev/null"])
    return target


def libraries(driver: Driver, *names: str) -> Part:
    """Stub libraries with the driver's names: libcuda.so.<version> and the link libcuda.so.1."""
    folder = LIBRARY_DIRS[driver.format]
    contained = {
        f"{folder}/{name}.so.{driver.version}": File(
            stub_library(f"{name}.so.1", driver.work), 0o755
        )
        for name in names
    }
    links = {f"{folder}/{name}.so.1": f"{name}.so.{driver.version}" for name in names}
    if driver.format == "deb":
        scripts = {s: text(f"scripts/ldconfig.{s}") for s in ("postinst", "postrm")}
        return Part(contained, links, scripts)
    return Part(contained, links, {"post": "ldconfig", "postun": "ldconfig"})


def source(driver: Driver) -> Part:
    """The module sources that DKMS builds."""
    folder = f"/usr/src/{driver.dkms_name}-{driver.version}"
    values = {
        "VERSION": driver.version,
        "LICENSE": LICENSES[driver.modules],
        "DKMS_NAME": driver.dkms_name,
    }
    names = ("dkms.conf", "Makefile", "module.c")
    return Part({f"{folder}/{name}": File(text(f"dkms/{name}", **values)) for name in names})


def dkms(driver: Driver) -> Part:
    """The scripts that build the modules with the host's DKMS."""
    names = ("postinst", "prerm") if driver.format == "deb" else ("post", "preun")
    values = {"VERSION": driver.version, "DKMS_NAME": driver.dkms_name}
    return Part(scripts={name: text(f"scripts/dkms.{name}", **values) for name in names})


def modprobe_files(driver: Driver) -> Part:
    path, name = MODPROBE[driver.format]
    scripts = {} if driver.format == "deb" else {"post": text("scripts/driver.post")}
    return Part({path: File(text(f"conf/{name}"))}, scripts=scripts)


def firmware(driver: Driver) -> Part:
    folder = f"/usr/lib/firmware/nvidia/{driver.version}"
    return Part({f"{folder}/{n}.bin": File("imitation\n") for n in ("gsp_ga10x", "gsp_tu10x")})


def smi(driver: Driver) -> Part:
    return Part({"/usr/bin/nvidia-smi": File(driver.nvidia_smi, 0o755)})


def mps(driver: Driver) -> Part:
    """The control program of MPS, which containers get from the host."""
    name = "nvidia-cuda-mps-control"
    built = program(name, driver.version, driver.work, static=True)
    return Part({f"/usr/bin/{name}": File(built, 0o755)})


def nvidia_modprobe(driver: Driver) -> Part:
    return Part({"/usr/bin/nvidia-modprobe": File(text("daemons/nvidia-modprobe.sh"), 0o4755)})


def service(driver: Driver, unit: str, unit_text: str, *, enable: bool) -> Part:
    """A unit file, and scripts that reload systemd and with `enable` enable and start it."""
    names = ("postinst", "prerm") if driver.format == "deb" else ("post", "preun")
    values = {"SERVICES": unit, "ENABLE": "yes" if enable else "no"}
    scripts = {name: text(f"scripts/service.{name}", **values) for name in names}
    return Part({f"{UNITS}/{unit}": File(unit_text)}, scripts=scripts)


def persistenced(driver: Driver) -> Part:
    """The persistence daemon; in Ubuntu and Debian its unit runs without persistence mode.

    rpm packages follow the system's presets, which neither enable nor start it.
    """
    options = "--verbose" if driver.format == "rpm" else "--no-persistence-mode --verbose"
    unit = "nvidia-persistenced.service"
    part = service(
        driver, unit, text(f"units/{unit}", OPTIONS=options), enable=driver.format == "deb"
    )
    binary = File(program("nvidia-persistenced", driver.version, driver.work), 0o755)
    return Part({**part.files, "/usr/bin/nvidia-persistenced": binary}, scripts=part.scripts)


def fabric_manager(driver: Driver) -> Part:
    """The fabric manager; its package does not enable it."""
    unit = "nvidia-fabricmanager.service"
    part = service(driver, unit, text(f"units/{unit}"), enable=False)
    binary = File(program("nv-fabricmanager", driver.version, driver.work), 0o755)
    config = "/usr/share/nvidia/nvswitch/fabricmanager.cfg"
    more = {"/usr/bin/nv-fabricmanager": binary, config: File(text("conf/fabricmanager.cfg"))}
    return Part({**part.files, **more}, scripts=part.scripts)


FEATURES: Mapping[str, Callable[[Driver], Part]] = {
    "source": source,
    "dkms": dkms,
    "modprobe": modprobe_files,
    "firmware": firmware,
    "ml": lambda d: libraries(d, "libnvidia-ml"),
    "cfg": lambda d: libraries(d, "libnvidia-cfg"),
    "ptx": lambda d: libraries(d, "libnvidia-ptxjitcompiler"),
    "cuda": lambda d: libraries(d, "libcuda"),
    "compute": lambda d: libraries(d, "libcuda", "libnvidia-ml", "libnvidia-ptxjitcompiler"),
    "smi": smi,
    "mps": mps,
    "nvidia-modprobe": nvidia_modprobe,
    "persistenced": persistenced,
    "fabric-manager": fabric_manager,
}


def content(driver: Driver, features: tuple[str, ...]) -> Part:
    """The merged parts of `features`. ValueError if two parts have the same script."""
    whole = Part({}, {}, {})
    for name in features:
        part = FEATURES[name](driver)
        twice = set(whole.scripts) & set(part.scripts)
        if twice:
            raise ValueError(f"{name}: the package already has a {', '.join(sorted(twice))}")
        whole = Part(
            {**whole.files, **part.files},
            {**whole.links, **part.links},
            {**whole.scripts, **part.scripts},
        )
    return whole
