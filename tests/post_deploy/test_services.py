"""The driver's services: persistence daemon and fabric manager."""

from __future__ import annotations

from gpufleet.verify.findings import hosts as kinds
from gpufleet.verify.node import CheckedNode

PERSISTENCE = "nvidia-persistenced.service"
FABRIC = "nvidia-fabricmanager.service"


def state(node: CheckedNode, unit: str) -> str:
    """A unit as text: `active, enabled`, or `not installed`."""
    values = node.services.get(unit, {})
    if values.get("LoadState", "not-found") == "not-found":
        return "not installed"
    return f"{values.get('ActiveState')}, {values.get('UnitFileState') or 'without [Install]'}"


def test_persistence_daemon(node: CheckedNode) -> None:
    """The persistence daemon runs, and is enabled."""
    node.need_driver()
    node.need(node.data.get("driver_persistence") is not False, "driver_persistence is false")
    node.need_loaded()
    found = state(node, PERSISTENCE)
    # A unit without [Install] is `static`: udev or another unit starts it at each boot.
    right = found in ("active, enabled", "active, static")
    node.expect(
        right, kinds.SERVICE_CHECK, f"{PERSISTENCE} active and enabled", found, unit=PERSISTENCE
    )


def test_fabric_manager(node: CheckedNode) -> None:
    """The fabric manager runs where an NVSwitch is; one without a switch does no harm."""
    node.need_driver()
    node.need(node.nvswitches, "the host has no NVSwitch")
    node.need_loaded()
    found = state(node, FABRIC)
    expected = f"{FABRIC} active and enabled for {len(node.nvswitches)} NVSwitches"
    node.expect(found == "active, enabled", kinds.SERVICE_CHECK, expected, found, unit=FABRIC)


def test_fabric_manager_version(node: CheckedNode) -> None:
    """The fabric manager has exactly the driver's version; it rejects any other."""
    version = node.need_driver()
    node.need(node.nvswitches, "the host has no NVSwitch")
    packages = [p for p in node.packages.values() if "fabric" in p.name and p.is_driver]
    node.need(packages, "the fabric manager is not installed (GF750)")
    found = ", ".join(f"{p.name} {p.version}" for p in packages)
    right = all(p.upstream == version for p in packages)
    node.expect(right, kinds.PACKAGES, f"fabric manager {version}, like the driver", found)
