"""Plans the removal from a host, by its record and by the notes of unfinished runs. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gpufleet.core.findings import Finding
from gpufleet.facts.gpu_work import in_containers
from gpufleet.facts.model import NodeFacts
from gpufleet.facts.record import RoleEntry
from gpufleet.host import findings as access
from gpufleet.node import findings
from gpufleet.node.catalog import Catalog
from gpufleet.node.settings import NodeSettings
from gpufleet.node.unfinished import NOTHING_LEFT, Unfinished, complete_entries
from gpufleet.role.listing import node_roles
from gpufleet.role.place import NO_PLACE, Place
from gpufleet.role.protocol import AnyRole, Removal, RemovalContext, RoleContext

BEFORE = "it was there before gpufleet"


@dataclass(frozen=True, slots=True)
class Recorded:
    """The recorded entry of a role that is still on the host. `version`: None if it is gone.

    `stays`: all its packages were installed before gpufleet.
    """

    version: str | None
    stays: bool = False

    @property
    def movement(self) -> dict[str, str | None]:
        """`before` and `after` of the removal, for the report."""
        return {"before": self.version, "after": self.version if self.stays else None}


@dataclass(frozen=True, slots=True)
class RemovalPlan:
    """The plan of a removal. It is empty if gpufleet installed nothing."""

    owns: bool = False  # gpufleet installed something
    parts: tuple[tuple[AnyRole, Removal], ...] = ()  # in the order of the roles
    held: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()  # without those installed before gpufleet
    files: tuple[tuple[str, str], ...] = ()  # path, sha256 of the content that gpufleet wrote
    written: tuple[str, ...] = ()  # further files, with the sha256 noted on the host
    findings: tuple[Finding, ...] = ()
    roles: tuple[tuple[str, Recorded], ...] = ()  # by name
    only: str = ""  # the only role that is removed; the record keeps other roles

    def of(self, role: AnyRole) -> Any:
        """The further removal of one role, or None if only its packages and files are removed."""
        return next((removal for each, removal in self.parts if each.name == role.name), None)

    @property
    def blockers(self) -> tuple[Finding, ...]:
        """The findings that stop the removal before it changes anything."""
        return tuple(finding for finding in self.findings if finding.blocks)

    @property
    def paths(self) -> tuple[str, ...]:
        """The files to remove."""
        return tuple(dict.fromkeys([*(path for path, _ in self.files), *self.written]))

    def describe(self) -> dict[str, Any]:
        """The plan as data for the JSON report."""
        described: dict[str, Any] = {"steps": self.steps()}
        for _, removal in self.parts:
            described |= removal.describe()
        return {**described, "packages": list(self.packages), "files": list(self.paths)}

    def steps(self) -> list[str]:
        """The steps as one sentence each, or [] without a record."""
        done: dict[str, object] = {}
        parts = [removal for _, removal in reversed(self.parts)]
        for removal in parts:
            done |= removal.first()
        for removal in parts:
            done |= removal.before()
        done |= {
            f"release and remove the packages {', '.join(self.packages)}": self.packages,
            f"remove {', '.join(self.paths)}": self.paths,
        }
        for removal in parts:
            done |= removal.after()
        what = f"remove {self.only} from the record" if self.only else "remove the record"
        done[what] = self.owns
        return [f"removal: {step}" for step, needed in done.items() if needed]


def plan_removal(
    settings: NodeSettings,
    facts: NodeFacts,
    catalog: Catalog,
    left: Unfinished = NOTHING_LEFT,
    only: AnyRole | None = None,
    place: Place = NO_PLACE,
) -> RemovalPlan:
    """Plan the removal of everything that the host's record lists or that unfinished runs began.
    `only`: remove this role and nothing else. `place`: in the inventory."""
    left = left.of(only, catalog) if only else left
    roles = [role for role in node_roles() if only in (None, role)]
    known = complete_entries(left, facts, catalog)
    entries = {role.name: known[role.name] for role in roles if role.name in known}
    if not (facts.provenance.exists if only is None else entries) and not left.there:
        return RemovalPlan(findings=(findings.NO_RECORD(),), only=only.name if only else "")
    files = _files(facts, catalog, roles)
    added, kept = _packages(entries)
    there = {path: file.sha256 for path, file in facts.files.items() if file.sha256}
    changed = [path for path, digest in files if there.get(path, digest) != digest]
    reloads = (access.PACKAGES_RELOAD(roles=", ".join(entries)),)
    wrote = (*(path for path, _ in files), *left.written)
    written = tuple(path for path in wrote if path not in changed)
    parts = _parts(settings, facts, catalog, entries, written, place, roles)
    return RemovalPlan(
        owns=True,
        parts=parts,
        held=_held(left, facts, roles),
        packages=added,
        files=files,
        written=left.written,
        findings=(
            *(finding for _, removal in parts for finding in removal.findings),
            *(findings.FILE_CHANGED(path=path) for path in changed),
            *((findings.STAYS_INSTALLED(what=", ".join(kept), why=BEFORE),) if kept else ()),
            *(() if only else _began(entries, facts, left)),
            *(reloads if added and in_containers(facts, _spared(facts, catalog)) else ()),
        ),
        roles=tuple(
            (role.name, _recorded(role, entries[role.name], facts))
            for role in reversed(node_roles())
            if role.name in entries
        ),
        only=only.name if only else "",
    )


def _parts(
    settings: NodeSettings,
    facts: NodeFacts,
    catalog: Catalog,
    entries: Mapping[str, RoleEntry],
    written: tuple[str, ...],
    place: Place,
    roles: Sequence[AnyRole],
) -> tuple[tuple[AnyRole, Removal], ...]:
    """The further removal of each of these roles, planned in reverse order of the roles."""
    spared = _spared(facts, catalog)
    parts: list[tuple[AnyRole, Removal]] = []
    left = facts
    for role in reversed(roles):
        leaving = RemovalContext(
            left,
            catalog,
            entries.get(role.name, role.entry()),
            facts.provenance.entry(role.entry).exists,
            spared,
            written,
            place,
        )
        removal = role.removal(settings.of(role), leaving)
        if removal:
            parts.insert(0, (role, removal))
            left = removal.facts_after(left)
    return tuple(parts)


def _began(
    entries: Mapping[str, RoleEntry], facts: NodeFacts, left: Unfinished
) -> tuple[Finding, ...]:
    """A finding that names the roles which a run began but did not record."""
    recorded = facts.provenance
    there = [role.name for role in node_roles() if recorded.entry(role.entry).exists]
    roles = [role.name for role in node_roles() if role.name in left.begun]
    roles += [role for role in entries if role not in (*there, *roles)]
    if not roles and not recorded.exists:
        roles = ["preparations for the first package"]
    return (findings.NOT_ENDED(roles=", ".join(roles)),) if roles else ()


def _recorded(role: AnyRole, entry: RoleEntry, facts: NodeFacts) -> Recorded:
    """Compare with the host: an interrupted removal, or a user, may have removed parts."""
    packages, services = entry.packages, role.services(entry)
    there = any(name in facts.packages for name in packages) if packages else True
    if not packages and services:
        there = any(unit in facts.services for unit in services)
    return Recorded(entry.version or None if there else None, bool(packages) and not entry.added)


def _spared(facts: NodeFacts, catalog: Catalog) -> frozenset[int]:
    """The processes on the GPUs that gpufleet itself stops."""
    context = RoleContext(facts, catalog)
    return frozenset().union(*(role.spared(context) for role in node_roles()))


def _held(left: Unfinished, facts: NodeFacts, roles: Sequence[AnyRole]) -> tuple[str, ...]:
    """Packages that roles hold. Those of unfinished transactions exclude packages held before."""
    recorded = [facts.provenance.entry(role.entry) for role in reversed(roles)]
    names = [name for entry in recorded if entry.held for name in entry.packages]
    names += [name for begun in left.begun.values() for name in begun if name in facts.packages]
    return tuple(dict.fromkeys(names))


def _packages(entries: Mapping[str, RoleEntry]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Packages that gpufleet installed, and packages of its roles that were installed before."""
    parts = [entries[role.name] for role in reversed(node_roles()) if role.name in entries]
    added = tuple(dict.fromkeys(name for part in parts for name in part.added))
    kept = dict.fromkeys(name for part in parts for name in part.packages if name not in added)
    return added, tuple(kept)


def _files(
    facts: NodeFacts, catalog: Catalog, roles: Sequence[AnyRole]
) -> tuple[tuple[str, str], ...]:
    """Path and sha256 of the files that these roles wrote, including repository keys."""
    files = dict(facts.provenance.files)
    if len(roles) < len(node_roles()):
        wrote = {path for role in roles for path in files if role.writes(path, catalog)}
        files = {path: digest for path, digest in files.items() if path in wrote}
    for role in roles:
        files |= role.own_files(facts)
    return tuple(files.items())
