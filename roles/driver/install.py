"""The NVIDIA driver on one host: what is carried out, in order."""

from __future__ import annotations

from pyinfra.api import deploy

from gpufleet.operations import files, modules, packages, reboot, repository, services
from gpufleet.operations.node import Node
from gpufleet.plan.driver import MODPROBE_FILE, RIVALS
from roles.driver.conclude import conclude
from roles.driver.job import driver_job


@deploy("NVIDIA driver")
def install(node: Node) -> None:
    """Bring the driver of `node` to its plan; a converged host sees no change."""
    plan = node.plan.driver
    if plan is None:
        return
    job = driver_job(node, plan)
    load = job.needed or plan.load

    repository.trust(plan.repository, "driver", name="Trust NVIDIA's driver repository")
    packages.look_up(job, name="Find the driver in the repositories and fetch it")
    files.write(
        node.facts, plan.files, name="Keep other drivers off the GPUs and upgrades off the driver"
    )
    modules.unload(
        load and plan.stale_module, not node.may_reboot, name="Unload the old driver's modules"
    )
    packages.install(job, name="Install the driver packages at one version")
    packages.hold(job.manager, plan.hold, name="Hold the driver packages")
    modules.require_built(
        job, plan.choice.build, name="See that the module was built for the running kernel"
    )
    modules.rebuild_initramfs(
        MODPROBE_FILE, ", ".join(RIVALS), plan.rebuilds_initramfs,
        name="Rebuild the initramfs with the blacklist",
    )  # fmt: skip
    loaded = modules.load(plan.target, job, RIVALS, load, name="Load the NVIDIA modules")

    def reboot_reason() -> str:
        node.reboot = modules.reboot_reason(loaded.stdout_lines) if loaded.is_complete() else ""
        return node.reboot

    reboot.when(
        reboot_reason, node.may_reboot, node.settings.driver.reboot_timeout,
        name="Reboot where only that helps",
    )  # fmt: skip
    services.run(
        plan.services, lambda: not node.waits_for_reboot,
        name="Start the persistence daemon and the fabric manager",
    )  # fmt: skip
    modules.compare(
        plan.target, job, lambda: load and not node.waits_for_reboot,
        name="Compare packages, module and library",
    )  # fmt: skip
    node.conclusions.append(lambda: conclude(node, plan, job))
