"""The module sources that DKMS builds on a host."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from gpufleet_sandbox.mirror.payload import Driver, source

MODULES = ("nvidia", "nvidia-uvm", "nvidia-modeset", "nvidia-drm")
KERNEL = "5.15.0-122-generic"


def build(modules: str, folder: Path) -> subprocess.CompletedProcess[str]:
    driver = Driver("deb", "580.159.03", modules, folder, folder / "nvidia-smi")
    for path, file in source(driver).files.items():
        assert isinstance(file.content, str)
        (folder / Path(path).name).write_text(file.content)
    command = ["make", f"KERNEL_UNAME={KERNEL}", "modules"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True)


@pytest.mark.parametrize(
    ("modules", "license"), [("open", b"Dual MIT/GPL"), ("proprietary", b"NVIDIA")]
)
def test_modules_have_their_modinfo(modules: str, license: bytes, tmp_path: Path) -> None:
    done = build(modules, tmp_path)
    assert done.returncode == 0, done.stderr
    for name in MODULES:
        info = (tmp_path / f"{name}.ko").read_bytes()
        assert b"version=580.159.03\0" in info
        assert b"license=" + license + b"\0" in info
        assert b"name=" + name.replace("-", "_").encode() + b"\0" in info
        assert b"vermagic=" + KERNEL.encode() + b" SMP" in info
    assert b"alias=pci:v000010DE" in (tmp_path / "nvidia.ko").read_bytes()
    assert b"alias=" not in (tmp_path / "nvidia-uvm.ko").read_bytes()


def test_only_the_rpm_of_older_open_modules_has_another_dkms_name(tmp_path: Path) -> None:
    def name(format: str, version: str, modules: str) -> str:
        return Driver(format, version, modules, tmp_path, tmp_path).dkms_name  # type: ignore[arg-type]

    assert name("rpm", "550.163.01", "open") == "nvidia-open"
    assert name("rpm", "550.163.01", "proprietary") == "nvidia"
    assert name("deb", "550.163.01", "open") == "nvidia"
