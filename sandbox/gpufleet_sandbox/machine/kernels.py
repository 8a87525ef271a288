"""Kernels of the sandbox hosts: /lib/modules/<release> with small in-tree modules."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from gpufleet_sandbox.process import run

# Longer than any vermagic, so that one compiled module serves every kernel.
PLACEHOLDER = "@" * 96
# The end of a signed module, which the simulated kernel checks too.
SIGNATURE = bytes(12) + b"~Module signature appended~\n"


@dataclass(frozen=True, slots=True)
class InTree:
    """A module of the kernel package. `alias` is matched against the PCI bus."""

    name: str
    folder: str
    needs: str = ""
    alias: str = ""


@dataclass(frozen=True, slots=True)
class KernelBuild:
    """A kernel release, its modules and built-in modules (paths below the modules folder)."""

    release: str
    modules: tuple[str, ...]
    builtin: tuple[str, ...]

    @property
    def vermagic(self) -> str:
        return f"{self.release} SMP mod_unload modversions "


MODULES = {
    module.name: module
    for module in (
        InTree("i2c_core", "drivers/i2c"),
        InTree("ipmi_msghandler", "drivers/char/ipmi"),
        InTree("ipmi_devintf", "drivers/char/ipmi", needs="ipmi_msghandler"),
        InTree("drm", "drivers/gpu/drm"),
        InTree("drm_kms_helper", "drivers/gpu/drm", needs="drm"),
        InTree("video", "drivers/acpi"),
        InTree(
            "nouveau",
            "drivers/gpu/drm/nouveau",
            needs="drm",
            alias="pci:v000010DEd*sv*sd*bc03sc*i*",
        ),
    )
}
COMMON = ("ipmi_msghandler", "ipmi_devintf", "drm", "drm_kms_helper", "video")
BUILTIN = ("kernel/fs/overlayfs/overlay.ko", "kernel/net/bridge/br_netfilter.ko")

KERNELS = tuple(
    KernelBuild(release, modules, builtin)
    for releases, modules, builtin in (
        (
            ("5.15.0-122-generic", "5.15.0-124-generic"),
            COMMON,
            (*BUILTIN, "kernel/drivers/i2c/i2c-core.ko"),
        ),
        (
            ("6.8.0-45-generic", "6.8.0-47-generic"),
            (*COMMON, "nouveau"),
            (*BUILTIN, "kernel/drivers/i2c/i2c-core.ko"),
        ),
        (
            ("6.1.0-99-amd64", "6.1.0-100-amd64"),
            COMMON,
            (*BUILTIN, "kernel/drivers/i2c/i2c-core.ko"),
        ),
        (
            ("3.10.0-1160.119.1.el7.x86_64", "3.10.0-1160.125.1.el7.x86_64"),
            (*COMMON, "i2c_core"),
            BUILTIN,
        ),
    )
    for release in releases
)


def build_kernels(sources: Path, target: Path) -> None:
    """Write `target`/<release> for every kernel, and `target`/extra with nouveau for each."""
    objects = {name: _compile(sources, target, module) for name, module in MODULES.items()}
    for kernel in KERNELS:
        tree = target / kernel.release
        for name in kernel.modules:
            module = MODULES[name]
            path = tree / "kernel" / module.folder / f"{_file_name(name)}.ko"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(_for_kernel(objects[name], kernel))
        (tree / "modules.builtin").write_text("".join(f"{path}\n" for path in kernel.builtin))
        for name in ("modules.order", "modules.builtin.modinfo"):
            (tree / name).touch()
        extra = target / "extra" / kernel.release
        extra.mkdir(parents=True)
        (extra / "nouveau.ko").write_bytes(_for_kernel(objects["nouveau"], kernel))


def _file_name(module: str) -> str:
    return {"i2c_core": "i2c-core"}.get(module, module)


def _compile(sources: Path, target: Path, module: InTree) -> bytes:
    path = target / f"{module.name}.o"
    path.parent.mkdir(parents=True, exist_ok=True)
    words = {
        "NAME": f'"{module.name}"',
        "DEPENDS": f'"{module.needs}"',
        "VERMAGIC": f'"{PLACEHOLDER}"',
        "SYMBOL": f"{module.name}_symbol",
    }
    if module.alias:
        words["ALIAS"] = f'"{module.alias}"'
    if module.needs:
        words["NEEDS"] = f"{module.needs}_symbol"
    defines = [f"-D{key}={value}" for key, value in words.items()]
    run(["gcc", "-c", *defines, sources / "stub.c", "-o", path])
    content = path.read_bytes()
    path.unlink()
    return content


def _for_kernel(content: bytes, kernel: KernelBuild) -> bytes:
    """The compiled module with this kernel's vermagic, padded with zeros."""
    marker = PLACEHOLDER.encode()
    assert content.count(marker) == 1
    return content.replace(marker, kernel.vermagic.encode().ljust(len(marker), b"\0")) + SIGNATURE
