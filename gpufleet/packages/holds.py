"""Holds of packages: which are there, and which an installation adds. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

from gpufleet.facts.model import NodeFacts
from gpufleet.facts.record import RoleEntry


def to_hold(packages: Sequence[str], facts: NodeFacts, *, moves: bool) -> tuple[str, ...]:
    """Packages to hold at the end. A new version ends apt's hold, and yum's lock has a version."""
    return tuple(name for name in packages if moves or not is_held(name, facts))


def lock_plugin(facts: NodeFacts, *, hold: bool) -> tuple[str, ...]:
    """The version lock plugin of yum and dnf, if a hold is requested and the plugin is missing."""
    name = facts.distribution.version_lock if facts.distribution else ""
    return (name,) if hold and name and name not in facts.packages else ()


def still_held(recorded: RoleEntry, facts: NodeFacts, *, moved: bool) -> bool:
    """True if an earlier run's holds still exist, for a removal to release. A move has ended them.

    `facts`: from before the run.
    """
    there = any(is_held(name, facts) for name in recorded.packages)
    return recorded.held and there and not moved


def is_held(name: str, facts: NodeFacts) -> bool:
    """True if the installed package is held. apt holds names; yum 3 and dnf lock versions:
    `epoch:name-version`, `name-epoch:version` or `name-version`, and shell wildcards in them."""
    package = facts.packages.get(name)
    if facts.package_manager == "apt" or package is None:
        return (package.name if package else name) in facts.holds
    epoch, version = f"0:{package.version}".split(":")[-2:]
    bare = package.name
    forms = (f"{epoch}:{bare}-{version}", f"{bare}-{epoch}:{version}", f"{bare}-{version}")
    texts = [*forms, *(f"{form}.{package.architecture}" for form in forms)]
    return any(fnmatchcase(text, lock) for lock in facts.holds for text in texts)
