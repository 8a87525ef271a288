"""The state that unfinished runs left on a host, in addition to or instead of a record. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from gpufleet.facts.model import NodeFacts
from gpufleet.facts.record import RoleEntry
from gpufleet.node.catalog import Catalog
from gpufleet.packages.transaction import is_headers
from gpufleet.role.listing import node_roles
from gpufleet.role.protocol import AnyRole


@dataclass(frozen=True, slots=True)
class Unfinished:
    """Notes that a run writes before it acts. The record is written last, and only after success.

    `there`: gpufleet's folder has more than copies of replaced files.
    """

    there: bool = False
    begun: dict[str, tuple[str, ...]] = field(default_factory=dict)  # role -> names to install
    # role -> installed, absent before
    added: dict[str, tuple[str, ...]] = field(default_factory=dict)
    written: tuple[str, ...] = ()  # files that gpufleet wrote and that exist
    images: tuple[str, ...] = ()  # images that docker pulled

    def with_added(self, role: str, names: Iterable[str]) -> Unfinished:
        """These notes with the packages that the transactions of a role installed."""
        return replace(self, added={**self.added, role: tuple(names)})

    def of(self, role: AnyRole, catalog: Catalog) -> Unfinished:
        """The notes about one role."""
        return Unfinished(
            there=role.name in self.begun,
            begun={name: names for name, names in self.begun.items() if name == role.name},
            added={name: names for name, names in self.added.items() if name == role.name},
            written=tuple(path for path in self.written if role.writes(path, catalog)),
        )


NOTHING_LEFT = Unfinished()


def parse_unfinished(lines: Iterable[str]) -> Unfinished:
    """Parse the output of scripts/unfinished.sh."""
    words = [line.partition(" ")[::2] for line in lines]
    begun: dict[str, tuple[str, ...]] = {}
    for word, rest in words:
        if word == "begun":
            role, _, name = rest.partition(" ")
            begun[role] = tuple(dict.fromkeys((*begun.get(role, ()), *([name] if name else []))))
    return Unfinished(
        there=("there", "") in words,
        begun=begun,
        written=tuple(rest for word, rest in words if word == "written"),
        images=tuple(rest for word, rest in words if word == "image"),
    )


def complete_entries(left: Unfinished, facts: NodeFacts, catalog: Catalog) -> dict[str, RoleEntry]:
    """The entries of the host's record by role, plus entries for roles that a run began but did not
    record."""
    entries: dict[str, RoleEntry] = {}
    for role in node_roles():
        entry: RoleEntry = facts.provenance.entry(role.entry)
        if role.name in left.begun:
            entry = _begun(role, entry, left, facts, catalog)
        elif not entry.exists and role.began(facts, left.written, left.images, catalog):
            entry = role.entry(version=None)
        if entry.exists:
            entries[role.name] = entry
    return entries


def _begun(
    role: AnyRole, old: RoleEntry, left: Unfinished, facts: NodeFacts, catalog: Catalog
) -> RoleEntry:
    came = left.added.get(role.name, ())
    there = {n: facts.packages[n] for n in left.begun[role.name] if n in facts.packages}
    main = role.main_packages(catalog)
    # packages in a transaction that are no part of the role: compiler, headers, version lock
    tools = {tool for each in catalog.distributions for tool in (*each.build, each.version_lock)}
    own = [n for n in there if n not in tools and not is_headers(n)]
    counted = [n for n in there if n in main] if main else own
    common = Counter(there[n].upstream for n in counted).most_common(1)
    return old.model_copy(
        update={
            "version": old.version or (common[0][0] if common else None),
            "packages": {n: p.version for n, p in there.items()} | old.packages,
            "added": sorted({*old.added, *came}),
        }
    )
