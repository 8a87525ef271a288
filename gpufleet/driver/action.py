"""Decides the action on a host's driver, its target version, and the work it disrupts. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Literal

from gpufleet.core.findings import Finding
from gpufleet.core.names import count_noun
from gpufleet.core.versions import version_order, version_tuple
from gpufleet.driver.choice import DriverChoice
from gpufleet.driver.findings import host as findings
from gpufleet.driver.settings import DriverSettings
from gpufleet.facts.gpu import LAYOUT_FILE
from gpufleet.facts.gpu_work import gpu_work
from gpufleet.facts.model import NodeFacts

Action = Literal["none", "install", "upgrade", "downgrade", "replace", "repair"]
_PREBUILT = re.compile(r"kmod-nvidia-(?!.*dkms$).+|linux-modules-nvidia-\d.+")
_MODULE_SOURCE = re.compile(r".+-dkms|nvidia-(dkms|kernel-source)-.+")
# linux-modules-nvidia-580-6.8.0-64-generic requires them:
# https://docs.nvidia.com/datacenter/cloud-native/gpu-operator/latest/precompiled-drivers.html
_LINKED_PARTS = re.compile(r"linux-(objects|signatures)-nvidia-")
SOURCES = {"nvidia": "NVIDIA's repository", "distro": "the distribution's archive"}


def installed_version(
    packages: tuple[str, ...], installed: tuple[str, ...], facts: NodeFacts
) -> str | None:
    """The version of the driver packages. If they differ: that of the first planned one, else of
    the library in use: Ubuntu's transitional packages keep the version of their own branch."""
    there = [name for name in packages if name in facts.packages and name in installed]
    like = re.compile(r"\d{3}\.\d+(\.\d+)?")
    others = [name for name in installed if like.fullmatch(facts.packages[name].upstream)]
    others.sort(key=lambda name: facts.packages[name].upstream != facts.library)
    names = there or others
    return facts.packages[names[0]].upstream if names else None


def without_build(
    choice: DriverChoice, packages: tuple[str, ...], before: str | None, facts: NodeFacts
) -> tuple[str, ...]:
    """The packages without missing ones of the module's source, if the installed driver stays and
    its module comes built: from NVIDIA's streams without -dkms on EL, from Ubuntu's archive.

    Source: https://github.com/NVIDIA/yum-packaging-precompiled-kmod and
    https://github.com/PXDiv/Div-Acer-Manager-Max/issues/38 (read 2026-11-28)
    """
    module = facts.module_on_disk
    stays = before and choice.version in (None, before) and before.split(".")[0] == choice.branch
    built = any(_PREBUILT.fullmatch(name) for name in facts.packages)
    if not (stays and built and module):
        return packages
    right = (module.version, module.flavour) == (before, choice.modules)
    lacking = {name for name in packages if name not in facts.packages}
    built_from = {name for name in lacking if right and _MODULE_SOURCE.fullmatch(name)}
    return tuple(name for name in packages if name not in built_from)


def without_newer_kernels(
    installed: tuple[str, ...], companions: tuple[str, ...], kernel: str
) -> tuple[str, ...]:
    """The installed packages without the same precompiled modules for newer kernels, which their
    metapackage requires. Those for older kernels require the old driver. The parts of which apt
    links such modules follow them.

    Source: https://github.com/elementary/settings-system/issues/233 (read 2026-11-28)
    """
    stems = (name.removesuffix(kernel) for name in companions if name.endswith(kernel))
    stem = next(stems, "")

    def is_newer(name: str) -> bool:
        release = name.removeprefix(stem)
        return release[:1].isdigit() and version_order(release) > version_order(kernel)

    return tuple(
        name
        for name in installed
        if not (stem and is_newer(name)) and not _LINKED_PARTS.match(name)
    )


def of_another_source(
    choice: DriverChoice, packages: tuple[str, ...], ours: Collection[str], facts: NodeFacts
) -> tuple[str, ...]:
    """Planned packages that were installed from another source, by their revision."""
    revision = re.compile(choice.packages.revision or ".*")
    return tuple(
        name
        for name in packages
        if name in facts.packages
        and name not in ours
        and not revision.fullmatch(facts.packages[name].version.rpartition("-")[2])
    )


def decide_driver_action(
    choice: DriverChoice,
    packages: tuple[str, ...],
    before: str | None,
    foreign: tuple[str, ...],
    facts: NodeFacts,
) -> tuple[str | None, Action, str]:
    """Decide the version after the run, the action, and its reason.

    A branch keeps the installed version: an upgrade needs an explicit version. None: the installed
    version comes from another source, and the run asks the configured one for it.
    """
    kept = before if before and before.split(".")[0] == choice.branch else None
    wanted = choice.version or kept
    action, reason = _action(choice, packages, before, wanted, facts)
    if choice.version or wanted is None or action not in ("repair", "replace"):
        return wanted, action, reason
    if foreign or not any(name in facts.packages for name in packages):
        shown = facts.packages[foreign[0]].version if foreign else before
        reason = (
            f"Driver {shown} is from another source than {SOURCES[choice.source]}, which need not "
            f"have that version: its newest of branch {choice.branch} replaces it."
        )
        return None, "replace", reason
    return wanted, action, reason


def is_loaded(choice: DriverChoice, target: str | None, facts: NodeFacts) -> bool:
    """True if the loaded module is the planned one, by version and flavour."""
    flavour = facts.loaded_flavour or facts.installed_flavour or choice.modules
    return (facts.loaded_driver, flavour) == (target, choice.modules)


def _action(
    choice: DriverChoice,
    family: tuple[str, ...],
    before: str | None,
    target: str | None,
    facts: NodeFacts,
) -> tuple[Action, str]:
    """The package action. Packages of `family` must have the same version, companions need not."""
    if before is None:
        return "install", "No driver is installed."
    if target is None:
        return "replace", f"Driver {before} is of another branch."
    if target != before:
        down = version_tuple(target) < version_tuple(before)
        reason = f"Driver {before} is installed, {target} is requested."
        return "downgrade" if down else "upgrade", reason
    packages = (*family, *choice.packages.companions)
    missing = [name for name in packages if name not in facts.packages]
    if missing and not any(name in facts.packages for name in family):
        return "replace", f"Driver {before} is installed from other packages."
    if missing and facts.installed_flavour not in (None, choice.modules):
        return "replace", (
            f"The kernel modules of driver {before} are {facts.installed_flavour}; "
            f"{choice.modules} ones replace them."
        )
    wrong = [
        name
        for name in packages
        if name in facts.packages
        and (
            facts.packages[name].state != "installed"
            or (name in family and facts.packages[name].upstream != target)
        )
    ]
    if missing or wrong:
        names = ", ".join([*missing, *wrong])
        return "repair", f"Packages of driver {before} are missing or half-installed: {names}"
    module = facts.module_on_disk
    if module is None or module.version != target:
        return "repair", f"Driver {before} has no module for the running kernel."
    if family and module.flavour != choice.modules:
        return "repair", f"Driver {before} has no {choice.modules} module for the running kernel."
    return "none", f"Driver {before} is installed."


def disruption_findings(
    settings: DriverSettings,
    facts: NodeFacts,
    spared: Collection[int],
    target: str | None,
    choice: DriverChoice,
    action: Action,
) -> list[Finding]:
    """Blockers if the plan would disrupt running GPU work or destroy MIG devices."""
    before, after = facts.loaded_driver, target or f"branch {choice.branch}"
    if before is None or (is_loaded(choice, target, facts) and action != "replace"):
        return []  # the module stays loaded while packages are completed
    found = lost_mig_devices(settings, facts)
    if settings.allow_disruption:
        return found
    if before == after:
        before += f" ({facts.loaded_flavour or facts.installed_flavour})"
        after += f" ({choice.modules})"
    if facts.gpu_pods:
        names = count_noun(facts.gpu_pods, "GPU pod")
    else:
        names = ", ".join(str(process) for process in gpu_work(facts, spared)[:5])
    return [*found, findings.GPU_BUSY(before=before, after=after, work=names)] if names else found


def lost_mig_devices(settings: DriverSettings, facts: NodeFacts) -> list[Finding]:
    """A blocker if unloading the module would destroy MIG devices that gpufleet does not manage.

    Source: https://docs.nvidia.com/datacenter/tesla/mig-user-guide/ (Getting Started with MIG)
    """
    if settings.allow_mig_loss or facts.listed is None or not facts.listed.mig_devices:
        return []
    file = facts.files.get(LAYOUT_FILE)
    lines = (file.content or "").splitlines() if file else []
    managed = {line.split()[0] for line in lines if " mig=" in line}
    devices = {state.slot: len(state.devices) for state in facts.listed.states}
    others = facts.listed.mig_devices - sum(devices.get(slot, 0) for slot in managed)
    if managed and (not devices or not others):
        return []
    return [findings.MIG_DEVICES(devices=others)]


def lower_driver(
    settings: DriverSettings,
    facts: NodeFacts,
    before: str | None,
    target: str | None,
    choice: DriverChoice,
) -> list[Finding]:
    """A blocker if the plan would downgrade the driver and no exact version is set."""
    if settings.version:
        return []
    there = {"installed": before, "loaded": facts.loaded_driver}
    newest = choice.newest_known
    for how, version in there.items():
        if version is None:
            continue
        low, high = version_tuple(target or choice.branch), version_tuple(version)
        if not low < high[: len(low)]:  # a branch counts as its highest version
            continue
        wanted = target or f"the newest version of branch {choice.branch}"
        known = newest if newest and newest.split(".")[0] == choice.branch else None
        example = f', such as driver_version = "{known}"' if known else ""
        finding = findings.LOWER_DRIVER(
            there=version, how=how, wanted=wanted, branch=version.split(".")[0], example=example
        )
        return [finding]
    return []
