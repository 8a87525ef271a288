"""Driver packages: relations and content for the names that the catalog lists."""

from __future__ import annotations

import re
from pathlib import Path

from gpufleet.sandbox.mirror.contents import Family, Member, families
from gpufleet.sandbox.mirror.model import File, Package
from gpufleet.sandbox.mirror.payload import Driver, Format, content

# What a package contains, by its name without branch and version. The first match counts; a name
# that matches none is empty but for a README (X, GL and settings are not imitated).
CONTENT: tuple[tuple[str, tuple[str, ...]], ...] = (
    (r"nvidia-dkms(-open)?", ("dkms",)),
    (r"nvidia-kernel-source(-open)?", ("source",)),
    (r"nvidia-kernel-(open-)?dkms|kmod-nvidia-(open|latest)-dkms", ("source", "dkms")),
    (r"nvidia-kernel-(common|support)", ("modprobe",)),
    (r"nvidia-driver-latest-dkms", ("modprobe", "firmware")),
    (r"nvidia-firmware|firmware-nvidia-gsp", ("firmware",)),
    (r"libnvidia-compute", ("compute",)),
    (r"libcuda1", ("cuda",)),
    (r"libnvidia-ml1?|.*-NVML", ("ml",)),
    (r"libnvidia-cfg1?", ("cfg",)),
    (r"libnvidia-ptxjitcompiler1", ("ptx",)),
    (r"nvidia-utils|nvidia-smi|nvidia-driver-(latest-dkms-)?cuda", ("smi",)),
    (r"nvidia-driver-latest-dkms-cuda-libs", ("cuda",)),
    (r"nvidia-persistenced(-latest-dkms)?", ("persistenced",)),
    (r"nvidia-modprobe(-latest-dkms)?", ("nvidia-modprobe",)),
    (r"nvidia-fabric-?manager", ("fabric-manager",)),
)
SMI = r"nvidia-utils|nvidia-smi|nvidia-driver-(latest-dkms-)?cuda"

# Who needs whom, at the same version, by the same names; what a family lacks is left out.
NEEDS: tuple[tuple[str, str], ...] = (
    (r"nvidia-dkms", r"nvidia-kernel-source"),
    (r"nvidia-dkms-open", r"nvidia-kernel-source-open"),
    (r"nvidia-dkms(-open)?", r"nvidia-kernel-common"),
    (r"nvidia-kernel-(open-)?dkms", r"nvidia-kernel-support|nvidia-alternative"),
    (r"nvidia-kernel-(common|support)", r"nvidia-firmware|firmware-nvidia-gsp"),
    (r"nvidia-alternative", r"nvidia-legacy-check"),
    (r"kmod-nvidia-.*-dkms", r"nvidia-driver-latest-dkms"),
    (r"nvidia-(compute-)?utils|libnvidia-decode", r"libnvidia-compute"),
    (r"nvidia-compute-utils", r"nvidia-persistenced"),
    (r"libnvidia-compute", r"libnvidia-gpucomp|nvidia-persistenced"),
    (r"nvidia-smi", r"libnvidia-ml1|nvidia-alternative"),
    (r"libcuda1", r"libnvidia-ptxjitcompiler1|nvidia-alternative"),
    (r"nvidia-driver-cuda", r"libcuda1|libnvidia-(ml1|cfg1|gpucomp)|nvidia-persistenced"),
    (r"nvidia-driver-latest-dkms", r"nvidia-driver-latest-dkms-libs"),
    (r"nvidia-driver-latest-dkms-cuda", r"nvidia-driver-latest-dkms-cuda-libs"),
    (r"nvidia-driver-latest-dkms(-cuda)?", r"nvidia-persistenced-latest-dkms"),
    (r"nvidia-driver-latest-dkms-cuda-libs", r"nvidia-driver-latest-dkms-(NVML|libs)"),
    (r"nvidia-driver-latest-dkms-(devel|NvFBCOpenGL)", r"nvidia-driver-latest-dkms-libs"),
)
FULL = r"nvidia-driver(-open)?"  # needs the whole family
MODPROBE = r"nvidia-modprobe"  # needed at this version or newer: another branch's may come in

# Outside the family.
BUILD_TOOLS = {"deb": ("dkms",), "rpm": ("dkms", "gcc", "make")}
EL7_DESKTOP = (
    "grubby", "xorg-x11-server-Xorg >= 1.19.0-3", "libglvnd >= 1.0", "libvdpau >= 0.5",
    "vulkan-filesystem", "opencl-filesystem", "ocl-icd",
)  # fmt: skip

# Only one of these at a time: what Provides, Conflicts and Replaces say.
EXCLUSIVE: tuple[tuple[str, str], ...] = (
    (r"nvidia-dkms(-open)?", "nvidia-dkms-kernel"),
    (r"nvidia-kernel-source(-open)?", "nvidia-kernel-source-any"),
    (r"nvidia-kernel-(open-)?dkms", "nvidia-kernel-dkms-any"),
)
# Files that one package after another has carried: only one package with them at a time.
MOVED = ("smi", "persistenced")
PINNED = "cuda-drivers nvidia-open nvidia-driver nvidia-driver-open nvidia-driver-cuda"


def packages(distribution: str, format: Format, work: Path, nvidia_smi: Path) -> list[Package]:
    """Every driver package of the CUDA repository for `distribution`."""
    built: dict[str, Package] = {}
    for family in families(distribution):
        for member in family.members:
            driver = Driver(
                format, family.version, member.modules or "proprietary", work, nvidia_smi
            )
            package = _package(family, member, driver)
            built[package.filename] = package
    return list(built.values())


def _package(family: Family, member: Member, driver: Driver) -> Package:
    part = content(driver, features(family, member))
    files = dict(part.files)
    if member.role == "pinning":
        files["/etc/apt/preferences.d/nvidia-driver-pinning"] = File(_preferences(member, family))
    if not files and not part.scripts:
        files[f"/usr/share/doc/{member.name}/README"] = File("Imitation: nothing is inside.\n")
    if driver.format == "rpm" and "ml" in features(family, member):
        # The imitation of EL 7 has Debian's loader, which does not search /usr/lib64 by itself.
        files["/etc/ld.so.conf.d/sandbox-lib64.conf"] = File("/usr/lib64\n")
    relate = deb_relations if driver.format == "deb" else rpm_relations
    return Package(
        driver.format,
        member.name,
        family.package_version(member),
        f"NVIDIA driver {family.version}: {member.base}",
        relations=relate(family, member),
        files=files,
        links=part.links,
        scripts=part.scripts,
    )


def features(family: Family, member: Member) -> tuple[str, ...]:
    """What goes into a member; two things move when the family has no package of their own."""
    found: tuple[str, ...] = ()
    for pattern, names in CONTENT:
        if re.fullmatch(pattern, member.base):
            found = names
            break
    if member.base == "libnvidia-compute" and not _any(family, SMI):
        found += ("smi",)
    if member.base == "nvidia-compute-utils" and not family.has("nvidia-persistenced"):
        found += ("persistenced",)
    return found


def needed(family: Family, member: Member) -> list[Member]:
    """Members that `member` depends on at exactly its own version."""
    if member.role == "meta":
        if family.epoch:  # rpm
            return family.role("dkms", "userland", modules=member.modules)
        drivers = family.role("desktop", modules=member.modules)
        return [other for other in drivers if re.fullmatch(FULL, other.base)]
    if re.fullmatch(FULL, member.base):
        roles = ("dkms", "kernel", "userland", "desktop")
        return [
            other
            for other in family.role(*roles, modules=member.modules or _flavour(family, member))
            if other is not member and not re.fullmatch(f"{FULL}|{MODPROBE}", other.base)
        ]
    patterns = [need for who, need in NEEDS if re.fullmatch(who, member.base)]
    return [
        other
        for other in family.members
        if other is not member and any(re.fullmatch(p, other.base) for p in patterns)
    ]


def _flavour(family: Family, member: Member) -> str | None:
    """Debian's nvidia-driver goes with either flavour: its dkms package is left to the meta."""
    return "none" if any(m.modules for m in family.role("dkms")) else None


def deb_relations(family: Family, member: Member) -> dict[str, tuple[str, ...]]:
    """Depends, Provides, Conflicts and Replaces."""
    others = needed(family, member)
    depends = [
        # A name that all branches share is asked for without an upper limit: another branch's
        # package may come in beside this driver.
        f"{other.name} (= {family.package_version(other)})"
        if other.name != other.base or member.name == member.base
        else f"{other.name} (>= {family.version})"
        for other in others
    ]
    if member.role == "meta":
        if not any(m.role == "dkms" for m in others):
            depends += [
                f"{m.name} (= {family.package_version(m)})"
                for m in family.role("dkms", modules=member.modules)
            ]
        depends += [f"{n} (>= {family.version})" for n in ("nvidia-modprobe", "nvidia-settings")]
    if member.role == "dkms":
        depends += BUILD_TOOLS["deb"]
    alone = [name for pattern, name in EXCLUSIVE if re.fullmatch(pattern, member.base)]
    if member.name != member.base and member.role != "pinning":
        alone.append(member.base)  # two branches do not go together
    if member.base == "nvidia-driver-cuda":
        alone.append("nvidia-smi")
    alone += [f"nvidia-{name}-file" for name in features(family, member) if name in MOVED]
    if member.role == "pinning":
        alone = ["nvidia-driver-pinning"]
    if member.role == "fabric_manager":
        alone = ["nvidia-fabric-manager-any"]
    names = tuple(alone)
    return {"Depends": tuple(depends), "Provides": names, "Conflicts": names, "Replaces": names}


def rpm_relations(family: Family, member: Member) -> dict[str, tuple[str, ...]]:
    """Requires, Provides and Conflicts; versions carry the epoch."""
    at = f"= {family.epoch}:{family.version}"
    requires = [f"{other.name} {at}" for other in needed(family, member)]
    provides, conflicts = [], []
    if member.role == "dkms":
        requires += BUILD_TOOLS["rpm"]
        provides.append(f"nvidia-kmod {at}")
        other = "latest" if "open" in member.name else "open"
        conflicts.append(f"kmod-nvidia-{other}-dkms")
    if member.base == "nvidia-driver-latest-dkms":
        requires += [f"nvidia-kmod {at}", *EL7_DESKTOP]
        provides += [f"nvidia-driver {at}", f"nvidia-drivers {at}"]
    if member.role == "own":
        requires.append("yum-utils")
    return {
        "Requires": tuple(requires),
        "Provides": tuple(provides),
        "Conflicts": tuple(conflicts),
    }


def _preferences(member: Member, family: Family) -> str:
    """As NVIDIA's pinning packages do: the metas only; leaf packages are not held by it."""
    branch_only = member.name.endswith(f"-{family.branch}")
    version = f"{family.branch}.*" if branch_only else f"{family.version}*"
    return f"Package: {PINNED}\nPin: version {version}\nPin-Priority: 1000\n"


def _any(family: Family, pattern: str) -> bool:
    return any(re.fullmatch(pattern, member.base) for member in family.members)
