"""The kernel's side: the module on disk and in memory, the library over it, the rivals absent."""

from __future__ import annotations

import re

from gpufleet.verify.findings import hosts as kinds
from gpufleet.verify.node import CheckedNode
from gpufleet.verify.parse import dkms_states

RIVALS = ("nouveau", "nova_core", "nova_drm", "nova")


def built(node: CheckedNode) -> bool:
    """Whether DKMS built the module for the running kernel, or the driver does not use DKMS."""
    if node.driver.get("build", "dkms") != "dkms":
        return True
    states = dkms_states(node.section("dkms").text, node.kernel)
    return states.get(node.driver_version) == "installed"


def test_dkms(node: CheckedNode) -> None:
    """DKMS has built and installed the module for the running kernel."""
    version = node.need_driver()
    node.need(node.driver.get("build", "dkms") == "dkms", "the modules were not built by DKMS")
    states = dkms_states(node.section("dkms").text, node.kernel)
    there = ", ".join(f"{v}: {s}" for v, s in states.items()) or node.section("dkms").last
    expected = f"{version} installed for kernel {node.kernel}"
    node.expect(built(node), kinds.DKMS, expected, there)


def test_module_file(node: CheckedNode) -> None:
    """The module on disk for the running kernel has the recorded version."""
    version = node.need_driver()
    node.need(built(node), "DKMS built no module for the running kernel (GF734)")
    section = node.section("module-file")
    expected = f"nvidia {version} for kernel {node.kernel}"
    node.expect(section.ok, kinds.MODULE_FILE, expected, section.last)
    found = section.lines[1] if len(section.lines) > 1 else "no version in it"
    node.expect(found == version, kinds.MODULE_FILE, expected, found)


def test_flavour(node: CheckedNode) -> None:
    """Open or proprietary modules, as recorded; the licence in the file says which they are."""
    node.need_driver()
    wanted = node.driver.get("modules")
    node.need(wanted, "the record does not say open or proprietary")
    section = node.section("module-file")
    node.need(section.ok and len(section.lines) > 2, "no module for the running kernel (GF732)")
    found = "proprietary" if section.lines[2] == "NVIDIA" else "open"
    node.expect(found == wanted, kinds.FLAVOUR, f"{wanted} modules", f"{found} modules")


def test_module_loaded(node: CheckedNode) -> None:
    """The loaded module has the recorded version."""
    version = node.need_driver()
    node.need(node.loaded or built(node), "DKMS built no module for the running kernel (GF734)")
    rival = [name for name in RIVALS if name in node.section("modules").lines]
    node.need(node.loaded or not rival, f"{', '.join(rival)} has the GPU (GF735)")
    found = node.loaded or "no nvidia module loaded"
    node.expect(found == version, kinds.MODULE_LOADED, f"module nvidia {version} loaded", found)


def test_library(node: CheckedNode) -> None:
    """The user-space library, and nvidia-smi with it, are the loaded module's."""
    loaded = node.need_loaded()
    library = node.section("library")
    expected = f"libnvidia-ml {loaded}, like the loaded module"
    node.expect(library.ok, kinds.MODULE_LOADED, expected, library.last)
    found = re.search(r"libnvidia-ml\.so\.(\d[\d.]*)$", library.text.strip())
    version = found[1] if found else library.text.strip()
    node.expect(version == loaded, kinds.MODULE_LOADED, expected, f"library {version}")
    smi = node.section("smi-version")
    node.need(smi.status != 127, "there is no nvidia-smi (GF720)")
    expected = f"nvidia-smi to print {loaded}"
    node.expect(smi.ok, kinds.MODULE_LOADED, expected, f"exit status {smi.status}: {smi.last}")
    said = sorted({line.strip() for line in smi.lines})
    node.expect(said == [loaded], kinds.MODULE_LOADED, expected, ", ".join(said))


def test_no_nouveau(node: CheckedNode) -> None:
    """No rival driver is loaded."""
    node.need_driver()
    found = [name for name in RIVALS if name in node.section("modules").lines]
    expected = "nouveau and nova not loaded"
    node.expect(not found, kinds.NOUVEAU, expected, f"loaded: {', '.join(found)}")


def test_blacklist(node: CheckedNode) -> None:
    """modprobe will not load a rival at the next boot."""
    node.need_driver()
    wanted = ["nouveau"]
    if node.section("nova-on-disk").ok:
        wanted += ["nova_core", "nova_drm"]
    listed = {line.strip().replace("-", "_") for line in node.section("blacklist").lines}
    missing = [name for name in wanted if name not in listed]
    expected = f"{', '.join(wanted)} blacklisted in modprobe's configuration"
    node.expect(not missing, kinds.BLACKLIST, expected, f"not blacklisted: {', '.join(missing)}")


def test_initramfs(node: CheckedNode) -> None:
    """The image that boots this kernel has the blacklist, or no nouveau."""
    node.need_driver()
    section = node.section("initramfs")
    node.need(section.status != 3, section.last)
    expected = f"the blacklist in the initramfs of {node.kernel}"
    node.expect(section.ok, kinds.INITRAMFS, expected, section.last)
    image, _, files = section.text.partition("blacklists nouveau:")
    node.need(files.strip(), "nouveau is not blacklisted (GF736)")
    names = [path.rsplit("/", 1)[1] for path in files.split()]
    there = any(f"modprobe.d/{name}" in image for name in names)
    found = f"none of {', '.join(names)} in it, but nouveau.ko"
    node.expect(there or "/nouveau.ko" not in image, kinds.INITRAMFS, expected, found)
