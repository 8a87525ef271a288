"""Installs the NVIDIA driver on one host, in this order."""

from __future__ import annotations

from gpufleet.driver import operations as driver
from gpufleet.driver.files import MODPROBE_FILE, RIVALS, own_gpus
from gpufleet.driver.plan import DriverPlan
from gpufleet.driver.role import ROLE as DRIVER
from gpufleet.driver.role import conclude_driver
from gpufleet.host import files, reboot
from gpufleet.host.operation import host_role
from gpufleet.node.operations import provenance
from gpufleet.node.operations.node import RunNode
from gpufleet.packages.operations import archives, repository
from gpufleet.packages.operations import transaction as packages
from gpufleet.role.result import RoleResult


def install(node: RunNode) -> None:
    """Apply the driver's plan to `node`; a converged host does not change."""
    plan = node.plan.of(DRIVER)
    if plan and not _settled(node, plan):
        _apply(node, plan)


def _settled(node: RunNode, plan: DriverPlan) -> bool:
    """True if no step has work to do. Even then, steps cost more than asking the host."""
    if not plan.converged or node.plan.archives.needed:
        return False
    return provenance.is_current(node, conclude_driver(node.settings.of(DRIVER), node.facts, plan))


@host_role("NVIDIA driver")
def _apply(node: RunNode, plan: DriverPlan) -> None:
    settings, general = node.settings.of(DRIVER), node.settings.host
    wanted = plan.transaction
    load = wanted.needed or plan.load

    archives.use_archives(
        "Switch discontinued repositories to their archives",
        node.facts,
        node.plan.archives,
        wanted.lock_timeout,
    )
    repository.open_components(
        "Enable the distribution's components", node.facts, plan.components, wanted.lock_timeout
    )
    repository.trust_repository(
        "Trust NVIDIA's driver repository", plan.repository, "driver", wanted.lock_timeout
    )
    found = packages.resolve_and_download(
        "Resolve and download the driver packages", wanted, node.prepared
    )
    files.write_files("Blacklist other drivers and pin the driver", node.facts, plan.files)
    driver.unload_modules(
        "Unload the old driver's modules",
        plan.modules,
        load and plan.stale_module,
        not node.may_reboot,
        not settings.allow_disruption,
        settings.allow_disruption,
    )
    packages.install_packages("Install the driver packages", wanted, found)
    packages.hold_packages("Hold the driver packages", wanted, plan.hold, plan.plugin)

    def version() -> str | None:
        return found.value.version if found.value else plan.target

    node.driver = version
    driver.require_module(
        "Check that the module is built for the running kernel",
        wanted.needed,
        plan.modules[0],
        plan.choice.modules,
        plan.choice.build,
        version,
    )
    driver.rebuild_initramfs(
        "Rebuild the initramfs with the blacklist", MODPROBE_FILE, plan.initramfs
    )
    loaded = driver.load_modules(
        "Load the NVIDIA modules", plan.modules, version, plan.choice.modules, RIVALS, load
    )

    def reboot_reason() -> str | None:
        node.reboot = driver.reboot_reason(loaded.stdout_lines) if loaded.is_complete() else None
        return node.reboot

    reboot.reboot_if_needed(
        "Reboot if required",
        reboot_reason,
        node.may_reboot,
        general.reboot_timeout,
        settings.allow_disruption,
    )
    driver.run_services(
        "Start the persistence daemon and the fabric manager",
        plan.wanted_services if load else plan.services,
        lambda: not node.waits_for_reboot,
    )
    driver.compare_driver_versions(
        "Compare the versions of packages, module and library",
        version,
        sum(gpu.answers for gpu in own_gpus(node.facts)),
        lambda: load and not node.waits_for_reboot,
    )

    def result() -> RoleResult:
        reboot = (node.reboot or "") if node.waits_for_reboot else ""
        return conclude_driver(settings, node.facts, plan, found.value, reboot)

    provenance.record_role("Record what was installed", node, result)
