"""Driver packages: names from the catalog, with their content."""

from __future__ import annotations

import re
from pathlib import Path

from gpufleet_sandbox.mirror.contents import Family, Member, families
from gpufleet_sandbox.mirror.model import File, Package
from gpufleet_sandbox.mirror.payload import Driver, Format, content
from gpufleet_sandbox.mirror.relations import deb_relations, rpm_relations

# The content of a package, by its name without branch and version. The first match applies; a name
# without a match gets only a README (X, GL and settings are not imitated).
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
    (r"nvidia-utils|nvidia-smi", ("smi",)),
    (r"nvidia-driver-(latest-dkms-)?cuda", ("smi", "mps")),
    (r"nvidia-compute-utils", ("mps",)),
    (r"nvidia-driver-latest-dkms-cuda-libs", ("cuda",)),
    (r"nvidia-persistenced(-latest-dkms)?", ("persistenced",)),
    (r"nvidia-modprobe(-latest-dkms)?", ("nvidia-modprobe",)),
    (r"nvidia-fabric-?manager", ("fabric-manager",)),
)
SMI = r"nvidia-utils|nvidia-smi|nvidia-driver-(latest-dkms-)?cuda"

# Files that moved between packages over time: only one package with them can be installed.
MOVED = ("smi", "persistenced")


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
        files[f"/usr/share/doc/{member.name}/README"] = File("Imitation: empty package.\n")
    if driver.format == "rpm" and "ml" in features(family, member):
        # The imitation of EL 7 has Debian's loader, which does not search /usr/lib64 by default.
        files["/etc/ld.so.conf.d/sandbox-lib64.conf"] = File("/usr/lib64\n")
    if driver.format == "deb":
        moved = tuple(name for name in features(family, member) if name in MOVED)
        relations = deb_relations(family, member, moved)
    else:
        relations = rpm_relations(family, member)
    return Package(
        driver.format,
        member.name,
        family.package_version(member),
        f"NVIDIA driver {family.version}: {member.base}",
        relations=relations,
        files=files,
        links=part.links,
        scripts=part.scripts,
    )


def features(family: Family, member: Member) -> tuple[str, ...]:
    """The content of a member; includes nvidia-smi and nvidia-persistenced if the family has no
    separate package for them."""
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


def _preferences(member: Member, family: Family) -> str:
    """Pin every package of the family to one version, or to the branch."""
    branch_only = member.name.endswith(f"-{family.branch}")
    version = f"{family.branch}.*" if branch_only else f"{family.version}*"
    names = sorted({other.name for other in family.members if other.role != "pinning"})
    return f"Package: {' '.join(names)}\nPin: version {version}\nPin-Priority: 1000\n"


def _any(family: Family, pattern: str) -> bool:
    return any(re.fullmatch(pattern, member.base) for member in family.members)
