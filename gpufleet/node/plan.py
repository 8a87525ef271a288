"""The whole plan of one host: steps, reasons and obstacles. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from gpufleet.core.findings import Finding
from gpufleet.facts.gpu_work import in_containers
from gpufleet.facts.model import NodeFacts
from gpufleet.host import findings as access
from gpufleet.host.file_write import FileWrite, edited_paths
from gpufleet.node import findings
from gpufleet.node.catalog import Catalog
from gpufleet.node.combinations import judge_node
from gpufleet.node.host_checks import full_disks, inspect_host, named_twice
from gpufleet.node.record_merge import is_recorded
from gpufleet.node.settings import NodeSettings
from gpufleet.packages import findings as package_findings
from gpufleet.packages.archives import NO_ARCHIVES, ArchivesPlan, plan_archives
from gpufleet.packages.logins import Logins
from gpufleet.packages.transaction import PackageTransaction
from gpufleet.role.faults import NO_FAULTS, Faults
from gpufleet.role.listing import node_roles
from gpufleet.role.place import NO_PLACE, Place
from gpufleet.role.protocol import AnyRole, PlanOf, Role, RoleContext
from gpufleet.role.result import file_digests


@dataclass(frozen=True, slots=True)
class RolePart:
    """The plan of one role, or None if it does not apply to the host. Findings say why."""

    role: AnyRole
    plan: Any
    findings: tuple[Finding, ...] = ()

    @property
    def transactions(self) -> tuple[PackageTransaction, ...]:
        """The transactions that install packages, or change their version."""
        planned = self.role.transactions(self.plan) if self.plan is not None else ()
        return tuple(each for each in planned if each.needed)

    def with_transactions(self, found: Iterator[PackageTransaction]) -> RolePart:
        """The part with its `transactions` replaced by the next ones of `found`."""
        if not self.transactions:
            return self
        planned = self.role.transactions(self.plan)
        settled = [next(found) if each.needed else each for each in planned]
        return replace(self, plan=self.role.with_transactions(self.plan, settled))


@dataclass(frozen=True, slots=True)
class NodePlan:
    """The plan of one host."""

    findings: tuple[Finding, ...]  # about the host and its first role
    parts: tuple[RolePart, ...] = ()  # in the order in which the roles run
    archives: ArchivesPlan = NO_ARCHIVES  # archives of discontinued repositories
    context: RoleContext | None = None  # the state after all roles
    faults: Faults = NO_FAULTS
    unrecorded: tuple[str, ...] = ()  # converged roles without a complete entry in the record

    def of(self, role: Role[Any, PlanOf, Any]) -> PlanOf | None:
        """The plan of one role."""
        found = next((part.plan for part in self.parts if part.role.name == role.name), None)
        return cast("PlanOf | None", found)

    @property
    def wanted(self) -> tuple[RolePart, ...]:
        """The roles with a plan."""
        return tuple(part for part in self.parts if part.plan is not None)

    @property
    def transactions(self) -> tuple[PackageTransaction, ...]:
        """The needed transactions of all roles, in the order of the steps."""
        return tuple(each for part in self.parts for each in part.transactions)

    def with_transactions(self, found: Sequence[PackageTransaction]) -> NodePlan:
        """The plan with `transactions` as the repositories resolve them, in the same order."""
        left = iter(found)
        return replace(self, parts=tuple(part.with_transactions(left) for part in self.parts))

    @property
    def sources(self) -> tuple[FileWrite, ...]:
        """The files that gpufleet writes as a whole, including package sources."""
        return tuple(_replaced(self.wanted, self.archives))

    @property
    def blockers(self) -> tuple[Finding, ...]:
        """The findings of all roles that stop the host before anything is changed."""
        return tuple(finding for finding in self.all_findings if finding.blocks)

    def converged(self, loaded: str | None) -> bool:
        """True if no step is needed while driver version `loaded` is loaded."""
        return all(part.role.converged(part.plan, loaded) for part in self.wanted)

    @property
    def files(self) -> tuple[FileWrite, ...]:
        """The text files that change, for --diff: once each, in the order of the roles."""
        edits = (file for part in self.wanted for file in part.role.edits(part.plan))
        return tuple(dict.fromkeys((*_replaced(self.wanted, self.archives), *edits)))

    @property
    def all_findings(self) -> tuple[Finding, ...]:
        later = (finding for part in self.parts[1:] for finding in part.findings)
        return (*self.findings, *later, *self.faults.all)


def plan_node(
    settings: NodeSettings,
    facts: NodeFacts,
    catalog: Catalog,
    now: int,
    logins: Mapping[str, Logins] | None = None,
    place: Place = NO_PLACE,
) -> NodePlan:
    """Plan a host. `now`: seconds since 1970 on this machine; `logins`: of package mirrors, by
    role; `place`: in the inventory."""
    context = RoleContext(
        facts,
        catalog,
        logins or {},
        place=place,
        lock_timeout=settings.host.lock_timeout,
        skew=facts.clock - now,
        gpus=settings.host.gpus,
    )
    spared = (role.spared(context) for role in node_roles())
    required = (role.requires(settings.of(role), catalog) for role in node_roles())
    context = replace(
        context,
        spared=frozenset().union(*spared),
        required={name: version for each in required for name, version in each.items()},
    )
    parts = []
    for role in node_roles():
        if role.needs_gpu and not facts.gpus:
            continue
        wanted = settings.of(role)
        plan, notes = role.plan(wanted, context)
        parts.append(RolePart(role, plan, notes))
        context = role.context_after(wanted, plan, context)
    first = context.logins.get(node_roles()[0].name, Logins())
    planned = [part for part in parts if part.plan is not None]
    plans = {part.role.name: part.plan for part in parts}
    found_wrong = (role.faults(plans.get(role.name), context) for role in node_roles())
    faults = sum(found_wrong, NO_FAULTS)
    if not facts.gpus and not planned and not any(part.findings for part in parts):
        return NodePlan(() if faults.all else (findings.HOST_WITHOUT_GPU(),), faults=faults)
    archives = plan_archives(settings.host, facts, catalog, _lacking(planned), first)
    converged = all(part.role.converged(part.plan, context.driver) for part in planned)
    found = [
        *named_twice(place),
        *inspect_host(facts, catalog, now),
        *parts[0].findings,
        *archives.findings,
        *_edits(planned, archives, facts),
        *_reloads(planned, context),
        *judge_node(planned, facts),
    ]
    if not converged and not any(each.code == package_findings.DISK_SPACE.code for each in found):
        found += full_disks(facts)
    unrecorded = _unrecorded(planned, settings, context)
    return NodePlan(
        tuple(dict.fromkeys(found)), tuple(parts), archives, context, faults, unrecorded
    )


def _unrecorded(
    parts: Sequence[RolePart], settings: NodeSettings, context: RoleContext
) -> tuple[str, ...]:
    """Converged roles with a result that the host's record lacks."""
    found = []
    for part in parts:
        if part.role.converged(part.plan, context.driver):
            result = part.role.outcome(settings.of(part.role), part.plan, context)
            if result and not is_recorded(context.facts.provenance, result):
                found.append(part.role.name)
    return tuple(found)


def plan_again(plan: NodePlan, settings: NodeSettings, facts: NodeFacts) -> NodePlan:
    """Make the plan again with the facts that a step of the run has found."""
    context = plan.context
    assert context
    now = facts.clock - context.skew
    return plan_node(settings, facts, context.catalog, now, context.logins, context.place)


def _edits(parts: Sequence[RolePart], archives: ArchivesPlan, facts: NodeFacts) -> list[Finding]:
    """A finding for each file that was edited on the host and that this run replaces."""
    files = _replaced(parts, archives)
    return [findings.FILE_EDITED(file=path) for path in edited_paths(files, facts)]


def _reloads(parts: Sequence[RolePart], context: RoleContext) -> list[Finding]:
    """Report packages that reload systemd in their scripts, if containers may lose their GPUs."""
    roles = [part.role.name for part in parts if part.transactions]
    distribution = context.facts.distribution
    systemd = distribution.systemd if distribution else None
    if systemd is None or systemd.version >= context.catalog.offline.version:
        return []  # packages/scripts prevent the reload
    if not roles or not in_containers(context.facts, context.spared):
        return []
    return [access.PACKAGES_RELOAD(roles=", ".join(roles))]


def _replaced(parts: Sequence[RolePart], archives: ArchivesPlan) -> list[FileWrite]:
    """The files that gpufleet writes as a whole."""
    files = list(archives.files)
    for part in parts:
        files += part.role.files(part.plan)
    for part in parts:
        repository = part.role.repository(part.plan)
        if repository and repository.needed and repository.source:
            files.append(repository.source)
    return files


def _lacking(parts: Iterable[RolePart]) -> tuple[str, ...] | None:
    """Prerequisites that the host lacks, or None if the plan installs no package."""
    needed = [each for part in parts for each in part.transactions]
    return tuple(name for each in needed for name in each.prerequisites) if needed else None


def plan_steps(plan: NodePlan) -> list[str]:
    """The steps as one sentence each, or [] for a converged host."""
    sentences = [f"repositories: write {file.path}" for file in plan.archives.files]
    for part in plan.wanted:
        assert plan.context
        sentences += part.role.steps(part.plan, plan.context)
    sentences += [f"{role}: record what is installed" for role in plan.unrecorded]
    return sentences


def steps_that_need_driver(plan: NodePlan) -> list[str]:
    """The steps that wait for a reboot that must load the driver."""
    begin = {part.role.name: part.role.need_driver for part in plan.wanted}
    found = (step.partition(": ") for step in plan_steps(plan))
    return [f"{role}: {said}" for role, _, said in found if said.startswith(begin.get(role, ()))]


def describe_plan(plan: NodePlan) -> dict[str, Any]:
    """The plan as data for preflight's JSON: what, from what to what, and why."""
    described = {part.role.name: part.role.describe(part.plan) for part in plan.wanted}
    return {
        "steps": plan_steps(plan),
        "digests": file_digests(file for file in plan.files if file.mode & 0o077),  # no secrets
        "downloads": [
            {"title": each.title, "packages": [*each.moved], "bytes": each.download}
            for each in plan.transactions
            if each.download is not None
        ],
        **{role.name: described.get(role.name) for role in node_roles()},
        "findings": [finding.as_dict() for finding in plan.all_findings],
    }
