"""The steps of a run on one host, executed by deploys/upgrade_driver.py."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from functools import partial

from pyinfra import host, state
from pyinfra.api import FactBase, StringCommand

from gpufleet.core.inventory import is_cluster
from gpufleet.core.names import list_names
from gpufleet.driver.role import ROLE as DRIVER
from gpufleet.facts.model import NodeFacts
from gpufleet.host import lock as host_lock
from gpufleet.host.asking import frame_command, framed_answer
from gpufleet.host.reading import read_fact
from gpufleet.host.shell import script_command
from gpufleet.host.upgrade_settings import Step, UpgradeSettings
from gpufleet.kube.node_answers import count_of
from gpufleet.node.catalog import load_catalog
from gpufleet.node.operations.node import (
    RunNode,
    blockers_of_user,
    current_node,
    facts_once_idle,
    is_busy,
    login_files,
    settings_and_facts,
)
from gpufleet.node.operations.place import host_place
from gpufleet.node.settings import NodeSettings
from gpufleet.packages.logins import Logins
from gpufleet.packages.operations.logins import node_logins
from gpufleet.run.reporting import RunReport
from gpufleet.toolkit.role import ROLE as TOOLKIT
from gpufleet.upgrade.findings import hosts as findings
from gpufleet.upgrade.look import KEPT_FOLDER, LookedHost, gpu_users, view_of
from gpufleet.upgrade.operations import host as on_host
from gpufleet.upgrade.operations import subject_steps
from gpufleet.upgrade.operations.subject_steps import (
    Install,
    driver_version,
    family_of,
    installed_of,
)
from gpufleet.upgrade.settings import load_upgrade_settings

Known = tuple[NodeSettings, NodeFacts]
NO_LOGINS_BY_ROLE: Mapping[str, Logins] = {}


class ListedGpus(FactBase[int]):
    """The GPUs that nvidia-smi lists within a few seconds."""

    default = int

    def command(self, seconds: int) -> StringCommand:
        return frame_command(script_command("upgrade/health", str(seconds)))

    def process(self, output: Iterable[str]) -> int:
        number = "".join(framed_answer(output) or ()).removeprefix("gpus ")
        return count_of(number)


def take_part(install: Install) -> None:
    """Execute the step of this process on the host of this deploy. `install`: the steps of all
    roles of a node."""
    report = RunReport.of(state)
    if is_cluster(host.groups):
        report.left_out.add(host.name)
        return
    settings, problems = load_upgrade_settings(host.data.dict())
    if settings is None:
        report.block(host, problems)
        return
    steps: dict[Step, Callable[[UpgradeSettings], None]] = {
        "look": look_step,
        "prepare": prepare_step,
        "take": take_step,
        "change": lambda settings: change_step(settings, install),
        "restore": restore_step,
    }
    if settings.subject == "sharing":
        noting = partial(note_step, attempt="restoring")
        steps |= {"prepare": note_step, "take": note_step, "restore": noting}
    if settings.step is None or (settings.step != "look" and not settings.run):
        report.block(host, [findings.NOT_BY_ITSELF()])
        return
    steps[settings.step](settings)


def look_step(settings: UpgradeSettings) -> None:
    """Read the host and report what a run must know for its plan. Changes nothing."""
    report = RunReport.of(state)
    report.plan_only = True
    known = settings_and_facts()
    if known is None:
        return
    logins, problems = node_logins(login_files(known[0]))
    problems = [*problems, *blockers_of_user(known[1])]
    if problems:
        report.block(host, problems)
        return
    gpus = read_fact(ListedGpus, settings.validation_timeout) if known[1].gpus else 0
    host_lock.arm_lock(host, known[1])  # a new run holds the host's lock from here on
    place = str(host.data.get(settings.wave_by) or "") if settings.wave_by else ""
    view = view_of(_seen(known, gpus, logins), place, settings.subject)
    report.host(host.name).plan["upgrade"] = asdict(view)


def take_step(settings: UpgradeSettings) -> None:
    """Check that the packages for a roll-back exist. Changes nothing."""
    known = settings_and_facts()
    if known:
        RunReport.of(state).host(host.name).examined = True
        host_lock.arm_lock(host, known[1])
        version = _wanted(settings, known[0]) or "?"
        on_host.check_kept_packages("Check the packages for the roll-back", version)


def note_step(settings: UpgradeSettings, attempt: str = "") -> None:
    """Record the health of a host whose layout changes; its earlier layout is in the state of its
    upgrade. `attempt`: see note_health."""
    known = settings_and_facts()
    if known is None:
        return
    RunReport.of(state).host(host.name).examined = True
    host_lock.arm_lock(host, known[1])
    if attempt:
        on_host.note_health("Note the state of the host", attempt)
    else:
        version = known[1].loaded_driver or "?"
        on_host.keep_packages("Note the health of the host", settings, None, version, {})


def _seen(
    known: Known, gpus: int = 0, logins: Mapping[str, Logins] = NO_LOGINS_BY_ROLE
) -> LookedHost:
    """The facts of the host for the view of a run."""
    of_node, facts = known
    RunReport.of(state).host(host.name).examined = True
    return LookedHost(
        host.name, of_node, facts, load_catalog(), int(time.time()), logins,
        host_place(state, host, facts), gpus,
    )  # fmt: skip


def prepare_step(settings: UpgradeSettings) -> None:
    """Prepare the change while the host keeps working."""
    node = current_node(preflights=False)
    family = family_of(settings.subject, node) if node else None
    if node and family:
        subject_steps.prepare_subject(settings, node, family)
    elif node:
        _nothing_to_change(node)


def change_step(settings: UpgradeSettings, install: Install) -> None:
    """Change the host, if nothing uses its GPUs."""
    node = current_node(preflights=False)
    if node is None:
        return
    if driver_version(settings.subject, node) is None:
        _nothing_to_change(node)
    elif work := gpu_users(node.facts, node.plan):
        RunReport.of(state).block(host, [findings.IN_USE(work=list_names(work))])
    else:
        node.prepared = True
        subject_steps.change_subject(settings, node, install)


def _nothing_to_change(node: RunNode) -> None:
    """The finding of a host that lost its driver or GPUs after planning, which is a failure."""
    wanted = len(node.facts.gpus)
    RunReport.of(state).block(host, [findings.GPUS_MISSING_BEFORE(found=0, wanted=wanted)])


def restore_step(settings: UpgradeSettings) -> None:
    """Install the earlier packages from the host's own folder, if nothing uses the GPUs. The next
    step loads them."""
    report = RunReport.of(state)
    known = settings_and_facts()
    if known and is_busy(known[1]):
        known = facts_once_idle(known[0])
    if known is None:
        return
    of_node, facts = known
    seen = _seen(known)
    wanted = _wanted(settings, of_node)
    if wanted is None or facts.package_manager is None:
        report.block(host, [findings.NOTHING_KEPT(folder=KEPT_FOLDER, version="?")])
        return
    if work := gpu_users(facts, seen.planned()):
        report.block(host, [findings.IN_USE(work=list_names(work))])
        return
    host_lock.arm_lock(host, facts)
    if settings.subject == "reboot":  # nothing was installed: the host may have come back late
        driver = facts.loaded_driver or "?"
        on_host.compare_health("Check driver, GPUs and services", settings, driver)
        return
    on_host.restore_packages(
        "Install the earlier packages from the host's own folder",
        wanted,
        facts.package_manager,
        of_node.host.lock_timeout,
        installed_of(settings.subject, seen.planned(settings.subject, wanted)),
    )


def _wanted(settings: UpgradeSettings, of_node: NodeSettings) -> str | None:
    """The target version of this step."""
    if settings.subject == "toolkit":
        return of_node.of(TOOLKIT).version
    return of_node.of(DRIVER).version
