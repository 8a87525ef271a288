"""Steps that remove the NVIDIA driver from one host, around its packages and files."""

from __future__ import annotations

from pyinfra.api.operation import OperationMeta

from gpufleet.driver.operations import removal
from gpufleet.driver.role import ROLE as DRIVER
from gpufleet.node.operations.removal import RemovalNode
from gpufleet.toolkit.role import ROLE as TOOLKIT


def first(node: RemovalNode) -> None:
    """Unload the modules before anything is removed."""
    must = not node.settings.of(DRIVER).allow_disruption
    removal.unload("Unload the NVIDIA modules", node.plan.of(DRIVER), must)


def before(node: RemovalNode) -> OperationMeta:
    """Remove device files and the specs that name them."""
    cdi = node.plan.of(TOOLKIT)
    return removal.forget_devices(
        "Remove the device files and the CDI spec", node.plan.of(DRIVER), cdi.specs, cdi.units
    )


def after(node: RemovalNode) -> None:
    """Rebuild the initramfs after the blacklist is removed."""
    file = node.plan.of(DRIVER).initramfs
    removal.rebuild_initramfs("Rebuild the initramfs without the blacklist", file)
