"""The NVIDIA software from the distribution: nvidia-smi and nvml.h."""

from __future__ import annotations

import shutil
from pathlib import Path

from gpufleet_sandbox.apt import PrivateApt, machine_sources
from gpufleet_sandbox.locks import exclusive

SMI_PACKAGES = ("nvidia-smi", "nvidia-utils-535", "nvidia-utils-550")
HEADER_PACKAGES = ("libnvidia-ml-dev",)


def nvidia_smi(cache: Path) -> Path:
    """The real nvidia-smi binary, fetched once: `cache`/nvidia/nvidia-smi."""
    return _fetched(cache)[0]


def nvml_header(cache: Path) -> Path:
    """nvml.h, which declares all NVML functions: `cache`/nvidia/nvml.h."""
    return _fetched(cache)[1]


def _fetched(cache: Path) -> tuple[Path, Path]:
    folder = cache / "nvidia"
    binary, header = folder / "nvidia-smi", folder / "nvml.h"
    with exclusive(folder, "fetch"):
        if not (binary.exists() and header.exists()):
            apt = PrivateApt(folder / "apt", machine_sources())
            apt.update()
            _copy(apt.fetch(SMI_PACKAGES), "nvidia-smi", binary)
            _copy(apt.fetch(HEADER_PACKAGES), "nvml.h", header)
            shutil.rmtree(apt.folder)
    return binary, header


def _copy(root: Path, name: str, target: Path) -> None:
    """Copy the regular file `name` of an unpacked package."""
    found = [path for path in sorted(root.rglob(name)) if path.is_file() and not path.is_symlink()]
    if not found:
        raise FileNotFoundError(f"no file {name} in the package under {root}")
    partial = target.with_suffix(".part")
    shutil.copy2(found[0], partial)
    partial.replace(target)
