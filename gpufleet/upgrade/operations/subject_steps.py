"""The subject of a run on one host: its packages, its change, and the version after it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from pyinfra.api import FactBase, StringCommand

from gpufleet.driver.role import ROLE as DRIVER
from gpufleet.gpu import operations as gpus
from gpufleet.host import reboot
from gpufleet.host.asking import frame_command, framed_answer
from gpufleet.host.file_write import FileWrite
from gpufleet.host.reading import read_fact
from gpufleet.host.shell import quote_command
from gpufleet.host.upgrade_settings import Subject, UpgradeSettings
from gpufleet.node.operations.node import RunNode
from gpufleet.node.plan import NodePlan
from gpufleet.packages.operations import archives, repository
from gpufleet.packages.operations import transaction as packages
from gpufleet.packages.transaction import PackageTransaction
from gpufleet.toolkit.role import ROLE as TOOLKIT
from gpufleet.upgrade.look import KEPT_FOLDER
from gpufleet.upgrade.operations import host as on_host

Install = Callable[[RunNode], None]


@dataclass(frozen=True, slots=True)
class Family:
    """The packages that a run changes."""

    job: PackageTransaction
    before: str
    installed: tuple[str, ...]
    components: FileWrite | None = None  # components of the distribution's own archive


def family_of(subject: Subject, node: RunNode) -> Family | None:
    """The transaction of the subject, or None if it is not installed or no role manages it."""
    if subject == "toolkit":
        toolkit = node.plan.of(TOOLKIT)
        if toolkit is None or toolkit.before is None:
            return None
        job = toolkit.transaction
        return Family(job, toolkit.before, job.installed)
    driver = node.plan.of(DRIVER)
    if driver is None or driver.before is None:
        return None
    job = driver.transaction
    there = tuple(name for name in job.companions if name in node.facts.packages)
    return Family(job, driver.before, (*job.installed, *there), driver.components)


class NotedBoot(FactBase[str]):
    """The boot ID from the start of the change, or ""."""

    default = str

    def command(self) -> StringCommand:
        return frame_command(quote_command("sed", "-n", "s/^boot //p", f"{KEPT_FOLDER}/health"))

    def process(self, output: Iterable[str]) -> str:
        return "".join(framed_answer(output) or ())


def prepare_subject(settings: UpgradeSettings, node: RunNode, family: Family) -> None:
    """Fetch the packages of the target and the installed ones, and try the transaction. Does not
    disturb running work. For a reboot, only records the host's health."""
    job, there, facts = family.job, {}, node.facts
    if settings.subject != "reboot":
        timeout = job.lock_timeout
        archives.use_archives(
            "Switch discontinued repositories to their archives", facts, node.plan.archives, timeout
        )
        repository.open_components(
            "Enable the distribution's components", facts, family.components, timeout
        )
        repository.trust_repository("Trust NVIDIA's repository", job.repository, job.role, timeout)
        packages.resolve_and_download("Resolve, try and download the packages", job)
        names = dict.fromkeys(family.installed)
        there = {name: facts.packages[name].version for name in names}
    on_host.keep_packages(
        "Fetch the installed packages for a roll-back", settings, job, family.before, there
    )


def change_subject(settings: UpgradeSettings, node: RunNode, install: Install) -> None:
    """Change the host by the steps of its roles, or reboot it, then compare it with its state
    before."""
    on_host.note_health("Note the state of the host")
    if settings.subject == "reboot":
        allowed = not node.facts.controller
        timeout = node.settings.host.reboot_timeout
        reboot.reboot_if_needed(
            "Reboot", lambda: _reboot_reason(node), allowed, timeout, end_work=False
        )
    else:
        install(node)
    if settings.subject == "sharing":
        gpus.check_layout("Compare the GPUs with their wanted layout")
    toolkit = node.plan.of(TOOLKIT) if settings.subject == "toolkit" else None
    driver = driver_version(settings.subject, node) or "?"
    wanted = toolkit.target if toolkit else ""
    on_host.compare_health("Check driver, GPUs and services", settings, driver, wanted)


def _reboot_reason(node: RunNode) -> str | None:
    """Why the host is rebooted. None if it was rebooted since the change began: by a killed
    process, or by a boot that took longer than node_reboot_timeout."""
    noted = read_fact(NotedBoot)
    return "it was requested" if noted in ("", node.facts.boot_id) else None


def driver_version(subject: Subject, node: RunNode) -> str | None:
    """The driver version after the change."""
    plan = node.plan.of(DRIVER)
    if subject == "driver":
        return plan.target if plan else None
    if subject in ("toolkit", "sharing"):
        return node.facts.loaded_driver
    return plan.before if plan else None


def installed_of(subject: Subject, plan: NodePlan) -> Sequence[str]:
    """The installed packages of the subject."""
    if subject == "toolkit":
        toolkit = plan.of(TOOLKIT)
        return toolkit.transaction.installed if toolkit else ()
    driver = plan.of(DRIVER)
    return driver.transaction.installed if driver else ()
