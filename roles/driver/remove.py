"""Steps that remove the NVIDIA driver from one host, around its packages and files."""

from __future__ import annotations

from pyinfra.api.operation import OperationMeta

from gpufleet.driver import operations as driver
from gpufleet.driver.role import ROLE as DRIVER
from gpufleet.node.operations.removal import RemovalNode
from gpufleet.toolkit.role import ROLE as TOOLKIT


def first(node: RemovalNode) -> None:
    """Unload the modules before anything is removed."""
    plan, must = node.plan.of(DRIVER), not node.settings.of(DRIVER).allow_disruption
    driver.unload_modules("Unload the NVIDIA modules", plan.modules, plan.unload, must, must)


def before(node: RemovalNode) -> OperationMeta:
    """Remove device files and the specs that name them."""
    plan, cdi = node.plan.of(DRIVER), node.plan.of(TOOLKIT)
    return driver.forget_devices(
        "Remove the device files and the CDI spec",
        plan.modules,
        plan.prerequisites,
        cdi.specs,
        cdi.units,
    )


def after(node: RemovalNode) -> None:
    """Rebuild the initramfs after the blacklist is removed."""
    file = node.plan.of(DRIVER).initramfs
    driver.rebuild_initramfs("Rebuild the initramfs without the blacklist", file, bool(file), True)
