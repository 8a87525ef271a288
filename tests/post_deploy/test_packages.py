"""The driver packages: at the recorded version, no others, held."""

from __future__ import annotations

import re

from gpufleet.core.names import count_noun
from gpufleet.verify.findings import hosts as kinds
from gpufleet.verify.node import CheckedNode
from gpufleet.verify.parse import DRIVER_NAME, Installed

# Debian and Ubuntu give these tools versions of their own, within the branch.
DISTRO_TOOLS = {"nvidia-modprobe", "nvidia-persistenced", "nvidia-settings", "nvidia-xconfig"}


def test_driver_packages(node: CheckedNode) -> None:
    """Every recorded package is installed at its version."""
    node.need_driver()
    recorded = node.driver.get("packages") or {}
    node.need(recorded, "no packages are recorded")
    found = node.differences(recorded)
    expected = f"{count_noun(len(recorded), 'driver package')} at the recorded versions"
    node.expect(not found, kinds.PACKAGES, expected, "; ".join(found))


def belongs(node: CheckedNode, package: Installed, version: str) -> bool:
    """Whether an unrecorded driver package may coexist with a driver of this version."""
    if package.upstream == version:
        return True
    tool = node.driver.get("source") == "distro" and package.name in DISTRO_TOOLS
    return tool and package.upstream.split(".")[0] == version.split(".")[0]


def test_one_version(node: CheckedNode) -> None:
    """No package of the driver family has another version, recorded or not."""
    version = node.need_driver()
    recorded = node.driver.get("packages") or {}
    family = [p for p in node.packages.values() if p.is_driver and p.name not in recorded]
    strays = [f"{p.name} {p.version}" for p in family if not belongs(node, p, version)]
    expected = f"all driver packages at {version}"
    node.expect(not strays, kinds.STRAYS, expected, ", ".join(sorted(strays)))


def test_driver_held(node: CheckedNode) -> None:
    """An upgrade of the host does not change the driver."""
    node.need_driver()
    node.need(node.driver.get("held"), "the driver was installed without a hold")
    node.expect_held(node.driver.get("packages") or {})


def test_unattended_upgrades(node: CheckedNode) -> None:
    """Unattended upgrades exclude the driver packages."""
    node.need_driver()
    node.need(node.driver.get("held"), "the driver was installed without a hold")
    node.need("unattended-upgrades" in node.packages, "unattended-upgrades is not installed")
    lines = node.section("unattended").lines
    key = "Unattended-Upgrade::Package-Blacklist::"
    patterns = [line.split(" ", 1)[1] for line in lines if line.startswith(f"{key} ")]
    loose = [
        name
        for name in sorted(node.driver.get("packages") or {})
        if DRIVER_NAME.search(name) and not any(re.match(pattern, name) for pattern in patterns)
    ]
    expected = "every driver package in Unattended-Upgrade::Package-Blacklist"
    node.expect(not loose, kinds.UNATTENDED, expected, f"not in it: {', '.join(loose)}")
