"""What a run does to the driver packages of a host, and to which version. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Literal

from gpufleet.core.versions import version_tuple
from gpufleet.driver.choice import DriverChoice
from gpufleet.facts.model import NodeFacts

Action = Literal["none", "install", "upgrade", "downgrade", "replace", "repair"]
_SOURCES = {"nvidia": "NVIDIA's repository", "distro": "the distribution's archive"}


def installed_version(
    packages: tuple[str, ...], installed: tuple[str, ...], facts: NodeFacts
) -> str | None:
    """The version of the driver packages; if they differ, that of the first planned one."""
    there = [name for name in packages if name in facts.packages and name in installed]
    names = there or [name for name in installed if _looks_like_driver(facts, name)]
    return facts.packages[names[0]].upstream if names else None


def _looks_like_driver(facts: NodeFacts, name: str) -> bool:
    return re.fullmatch(r"\d{3}\.\d+(\.\d+)?", facts.packages[name].upstream) is not None


def of_another_source(
    choice: DriverChoice, packages: tuple[str, ...], ours: Collection[str], facts: NodeFacts
) -> tuple[str, ...]:
    """Planned packages that are installed from elsewhere: their revision is not of this source."""
    revision = re.compile(choice.packages.revision or ".*")
    return tuple(
        name
        for name in packages
        if name in facts.packages
        and name not in ours
        and not revision.fullmatch(facts.packages[name].version.rpartition("-")[2])
    )


def decide(
    choice: DriverChoice,
    packages: tuple[str, ...],
    before: str | None,
    foreign: tuple[str, ...],
    facts: NodeFacts,
) -> tuple[str | None, Action, str]:
    """The version after the run, the action, and its reason.

    A branch keeps the version that is installed: an upgrade needs an explicit one. But a version
    of another source need not be in the configured one, which is asked in the run: None.
    """
    wanted = choice.version or _kept_version(choice, before)
    action, reason = _action(choice, packages, before, wanted, facts)
    if choice.version or wanted is None or action not in ("repair", "replace"):
        return wanted, action, reason
    if foreign or not any(name in facts.packages for name in packages):
        shown = facts.packages[foreign[0]].version if foreign else before
        reason = (
            f"Driver {shown} is from another source than {_SOURCES[choice.source]}, which need not "
            f"have that version: its newest of branch {choice.branch} replaces it."
        )
        return None, "replace", reason
    return wanted, action, reason


def is_loaded(choice: DriverChoice, target: str | None, facts: NodeFacts) -> bool:
    """Whether the loaded module is the planned one, by version and flavour."""
    flavour = facts.loaded_flavour or facts.installed_flavour or choice.modules
    return (facts.loaded_driver, flavour) == (target, choice.modules)


def _kept_version(choice: DriverChoice, before: str | None) -> str | None:
    return before if before and before.split(".")[0] == choice.branch else None


def _action(
    choice: DriverChoice,
    family: tuple[str, ...],
    before: str | None,
    target: str | None,
    facts: NodeFacts,
) -> tuple[Action, str]:
    """The package action; the packages of `family` must have one version, companions any."""
    if before is None:
        return "install", "No driver is installed."
    if target != before:
        return _move(before, target)
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
        return "repair", f"Packages of driver {before} are missing or half-installed: " + ", ".join(
            [*missing, *wrong]
        )
    module = facts.module_on_disk
    if module is None or module.version != target:
        return "repair", f"Driver {before} has no module for the running kernel."
    if family and module.flavour != choice.modules:
        return "repair", f"Driver {before} has no {choice.modules} module for the running kernel."
    return "none", f"Driver {before} is installed."


def _move(before: str, target: str | None) -> tuple[Action, str]:
    if target is None:
        return "replace", f"Driver {before} is of another branch."
    down = version_tuple(target) < version_tuple(before)
    verb: Action = "downgrade" if down else "upgrade"
    return verb, f"Driver {before} is installed, {target} is requested."
