"""Dependencies and conflicts between the driver packages."""

from __future__ import annotations

import re

from gpufleet_sandbox.mirror.contents import Family, Member, families

# Dependencies at the same version, by base name; packages that a family lacks are ignored.
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
FULL = r"nvidia-driver(-open)?"  # depends on the whole family
MODPROBE = r"nvidia-modprobe"  # required at this version or newer, which may be of another branch

# Dependencies outside the family.
BUILD_TOOLS = {"deb": ("dkms",), "rpm": ("dkms", "gcc", "make")}
EL7_DESKTOP = (
    "grubby", "xorg-x11-server-Xorg >= 1.19.0-3", "libglvnd >= 1.0", "libvdpau >= 0.5",
    "vulkan-filesystem", "opencl-filesystem", "ocl-icd",
)  # fmt: skip

# Only one of each can be installed, by Provides, Conflicts and Replaces.
EXCLUSIVE: tuple[tuple[str, str], ...] = (
    (r"nvidia-dkms(-open)?", "nvidia-dkms-kernel"),
    (r"nvidia-kernel-source(-open)?", "nvidia-kernel-source-any"),
    (r"nvidia-kernel-(open-)?dkms", "nvidia-kernel-dkms-any"),
)


def needed(family: Family, member: Member) -> list[Member]:
    """Members that `member` depends on at exactly its version."""
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
    """Debian's nvidia-driver works with either flavour: the metapackage selects the modules."""
    return "none" if any(m.modules for m in family.role("dkms")) else None


def deb_relations(
    family: Family, member: Member, moved: tuple[str, ...]
) -> dict[str, tuple[str, ...]]:
    """Depends, Provides, Conflicts and Replaces.

    `moved`: files in the package that are in a package of another name in another branch.
    """
    others = needed(family, member)
    depends = [
        # A name shared by all branches has no upper limit: another branch's package may be
        # installed with this driver.
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
        alone.append(member.base)  # two branches conflict
    if member.base == "nvidia-driver-cuda":
        alone.append("nvidia-smi")
    alone += [f"nvidia-{name}-file" for name in moved]
    if member.role == "pinning":
        alone = ["nvidia-driver-pinning"]
    if member.role == "fabric_manager":
        alone = ["nvidia-fabric-manager-any"]
    names, rivals = tuple(alone), tuple(alone + older_names(family, member))
    return {"Depends": tuple(depends), "Provides": names, "Conflicts": rivals, "Replaces": rivals}


def older_names(family: Family, member: Member) -> list[str]:
    """Names with a branch that a package without one replaces (Ubuntu, from 590 on)."""
    if member.name != member.base or member.role not in ("dkms", "kernel", "userland", "desktop"):
        return []
    same = {
        m.name for f in families(family.distribution) for m in f.members if m.base == member.base
    }
    return sorted(same - {member.name})


def rpm_relations(family: Family, member: Member) -> dict[str, tuple[str, ...]]:
    """Requires, Provides and Conflicts; versions include the epoch."""
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
