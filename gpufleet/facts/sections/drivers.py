"""Finds the owner of a host's driver: packages, or an installer without packages."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence

from gpufleet.facts.model import DkmsModule, DriverFile, Kernel, Package

# Packages with the driver's library, and those with its modules, of the sources that gpufleet
# replaces. If one is installed, its files are not examined. packages.sh gets the same expressions,
# for every awk: without intervals and backslashes.
LIBRARY_PACKAGES = (
    "^(cuda-drivers(-[0-9]+)?|libnvidia-(ml1?|compute(-[0-9]+)?(-server)?|tesla-([0-9]+-)?ml1)"
    "|nvidia-driver(-latest(-dkms)?|-branch-[0-9]+)?-(NVML|cuda-libs)|nvidia-compute-G[0-9]+)$"
)
MODULE_PACKAGES = (
    "^(nvidia-dkms(-[0-9]+)?(-server)?(-open)?|nvidia-((open|tesla(-[0-9]+)?)-)?kernel-(open-)?dkms"
    "|linux-(modules|objects)-nvidia-.+|(dkms|kmod)-nvidia(-.+)?|nvidia-(open-)?driver-G[0-9]+.*)$"
)
_CARRIERS = re.compile(f"{LIBRARY_PACKAGES}|{MODULE_PACKAGES}")
_FOREIGN_ARCHITECTURES = ("i386", "i586", "i686")  # 32-bit libraries fit any driver
_ELSEWHERE = "driver "
_CACHED = "cache "
_DPKG_OWNERS = re.compile(r"([^\s:,]+(?::\w+)?(?:, [^\s:,]+(?::\w+)?)*): /")
_DIVERTED = re.compile("diversion by |local diversion ")
_RPM_OWNER = re.compile(r"[\w.+-]+")
_DENIED = ("no path found matching pattern", "is not owned by any package")


def parse_driver_files(lines: Iterable[str]) -> tuple[DriverFile, ...]:
    """The files that the package manager was asked about, with its answers."""
    asked: list[tuple[str, str, list[str]]] = []
    for line in lines:
        word, _, rest = line.strip().partition(" ")
        if word == "asked":
            kind, _, path = rest.partition(" ")
            asked.append((kind, path, []))
        elif word == "answer" and asked:
            asked[-1][2].append(rest)
    return tuple(DriverFile(kind, path, _owners(answers)) for kind, path, answers in asked)


def _owners(answers: Sequence[str]) -> tuple[str, ...] | None:
    """Packages in the answer of `dpkg -S` or `rpm -qf`, or None if the answer is unclear."""
    found: set[str] = set()
    answers = [answer for answer in answers if not _DIVERTED.match(answer)]
    for answer in answers:
        if match := _DPKG_OWNERS.match(answer):
            found |= {name.partition(":")[0] for name in match.group(1).split(", ")}
        elif _RPM_OWNER.fullmatch(answer):
            found.add(answer)
    if found:
        return tuple(sorted(found))
    denied = [any(text in answer for text in _DENIED) for answer in answers]
    return () if denied and all(denied) else None


def is_driver_packaged(packages: Mapping[str, Package], files: Collection[DriverFile]) -> bool:
    """True if a package with the driver's library or modules is installed, from any source."""
    return any(file.owners for file in files) or any(
        _CARRIERS.match(package.name) and package.architecture not in _FOREIGN_ARCHITECTURES
        for package in packages.values()
    )


def foreign_driver_sign(
    oddities: Collection[str],
    files: Collection[DriverFile],
    dkms: Sequence[DkmsModule],
    kernel: Kernel,
    *,
    loaded: bool,
    packaged: bool,
) -> str:
    """Evidence that no package installed the driver, or "": files without an owner, or a kernel
    without modules. A loaded module alone may remain from a removed driver."""
    if packaged:
        return ""
    of_unknown = {file.path.rpartition("/")[0] for file in files if file.owners is None}
    folders = {line.removeprefix(_ELSEWHERE) for line in oddities if line.startswith(_ELSEWHERE)}
    if folders := folders - of_unknown:
        return f"its libraries are in {min(folders)}"
    for file in files:
        if file.kind == "library" and file.owners == ():
            return f"no package has {file.path.rpartition('/')[2]}"
    if module := _module(files, dkms):
        return f"no package has its module {module}"
    if loaded and not kernel.modules:
        return f"its module is loaded, and there is no /lib/modules/{kernel.release}"
    cached = [line.removeprefix(_CACHED) for line in oddities if line.startswith(_CACHED)]
    if loaded and cached:
        return f"its module is loaded, and programs get {min(cached)}"
    return ""


def _module(files: Collection[DriverFile], dkms: Sequence[DkmsModule]) -> str:
    """The module that no package owns and that DKMS did not build, or "". A module from DKMS may
    remain from a removed package, unless its source exists and has no owner."""
    sources = [file for file in files if file.kind == "source"]
    built = any(module.name.startswith("nvidia") for module in dkms)
    if (sources and not all(file.owners == () for file in sources)) or (built and not sources):
        return ""
    modules = [file.path for file in files if file.kind == "module" and file.owners == ()]
    return modules[0] if modules else ""


def by_runfile(oddities: Collection[str], *, driver: bool, packaged: bool) -> bool:
    """True if NVIDIA's installer installed the driver. Its log alone may be old, so the log counts
    only for a driver without packages."""
    by_log = "runfile log" in oddities and driver and not packaged
    return by_log or "runfile uninstaller" in oddities
