"""The interface of a node's role: settings, plan, steps, record, findings. Pure."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Generic, TypeVar

from gpufleet.combinations.models import NO_COMPONENTS, Components
from gpufleet.core.findings import Finding
from gpufleet.core.node_roles import RuntimeState
from gpufleet.core.settings import RoleSettings
from gpufleet.facts.model import NodeFacts
from gpufleet.facts.record import RoleEntry
from gpufleet.host.file_write import FileWrite
from gpufleet.packages.logins import Logins
from gpufleet.packages.repository import RepositoryPlan
from gpufleet.packages.transaction import PackageTransaction
from gpufleet.role.faults import NO_FAULTS, Faults
from gpufleet.role.impact import NO_IMPACT, Impact
from gpufleet.role.place import NO_PLACE, Place, PlaceQuestion
from gpufleet.role.result import RoleResult

SettingsOf = TypeVar("SettingsOf", bound=RoleSettings)
PlanOf = TypeVar("PlanOf")
EntryOf = TypeVar("EntryOf", bound=RoleEntry)


@dataclass(frozen=True, slots=True)
class RoleContext:
    """The input of a role's plan: the host, in the state in which earlier roles leave it."""

    facts: NodeFacts
    catalog: Any  # of the type that the role expects
    logins: Mapping[str, Logins] = field(default_factory=dict)  # of package mirrors, by role
    spared: frozenset[int] = frozenset()  # processes on the GPUs that gpufleet itself stops
    driver: str | None = None  # version loaded at the role's turn, None if unknown
    installs: str | None = None  # version or branch that a role installs
    loads_driver: bool = False  # a step of the run loads the driver's modules
    repository: RepositoryPlan | None = None  # NVIDIA's, if earlier roles add it
    served: frozenset[str] = frozenset()  # container runtimes with a handler nvidia
    texts: Mapping[str, str] = field(default_factory=dict)  # changed files: path -> text
    place: Place = NO_PLACE  # in the inventory
    lock_timeout: int = 300  # node_lock_timeout, in seconds
    skew: int = 0  # seconds by which the host's clock is ahead of this machine's
    required: Mapping[str, str] = field(default_factory=dict)  # `requires` of all roles
    gpus: int | None = None  # the setting node_gpus

    @property
    def branch(self) -> str:
        """The branch of the driver, or "" if it is unknown."""
        return (self.installs or self.driver or "").split(".")[0]


@dataclass(frozen=True, slots=True)
class RemovalContext(Generic[EntryOf]):
    """The input of the plan to remove a role."""

    facts: NodeFacts
    catalog: Any
    entry: EntryOf  # from the record, and from the notes of an unfinished run
    recorded: bool  # the record has the role
    spared: frozenset[int] = frozenset()  # processes on the GPUs that gpufleet itself stops
    written: tuple[str, ...] = ()  # all files of gpufleet that are removed
    place: Place = NO_PLACE  # in the inventory


class Removal:
    """The removal of everything but the role's packages and recorded files."""

    findings: tuple[Finding, ...]

    def first(self) -> Mapping[str, object]:
        """Steps before anything else is removed: sentence -> whether it applies."""
        return {}

    def before(self) -> Mapping[str, object]:
        """Steps before packages and files are removed."""
        return {}

    def after(self) -> Mapping[str, object]:
        """Steps after packages and files are removed."""
        return {}

    def facts_after(self, facts: NodeFacts) -> NodeFacts:
        """The facts for the roles that are removed later."""
        return facts

    def describe(self) -> dict[str, Any]:
        """The rest of the removal as data for the JSON report."""
        return {}


class Role(ABC, Generic[SettingsOf, PlanOf, EntryOf]):
    """One role. The default methods suit a role that lacks the part in question."""

    name: ClassVar[str]  # of its package, its entry in the record, its column in the report
    folder: ClassVar[str] = ""  # in roles/, if it differs from the name
    needs_gpu: ClassVar[bool] = True  # it does nothing on a host without GPUs
    need_driver: ClassVar[tuple[str, ...]] = ()  # beginnings of steps that need a loaded driver
    settings: type[SettingsOf]
    entry: type[EntryOf]

    # Settings, and the facts that they require.

    def contradictions(self, settings: SettingsOf) -> list[Finding]:
        """Findings about conflicting settings."""
        return []

    def logins(self, settings: SettingsOf) -> tuple[str, str | None] | None:
        """The key that names a file of logins for package mirrors, and that file."""
        return None

    def paths(self, settings: SettingsOf) -> tuple[str, ...]:
        """Further files to read on the host."""
        return ()

    def ports(self, settings: SettingsOf) -> tuple[int, ...]:
        """TCP ports whose listeners are read."""
        return ()

    def requires(self, settings: SettingsOf, catalog: Any) -> Mapping[str, str]:
        """Roles that must be done before: name -> oldest sufficient version ("" for any). The key
        "cgroup-driver" has the kubelet's cgroup driver."""
        return {}

    def question(
        self, settings: SettingsOf, facts: NodeFacts, place: Place
    ) -> PlaceQuestion | None:
        """The facts about other hosts that the plan needs, or None."""
        return None

    # The plan, and its parts for the report.

    def spared(self, context: RoleContext) -> frozenset[int]:
        """gpufleet's own processes on the GPUs."""
        return frozenset()

    @abstractmethod
    def plan(
        self, settings: SettingsOf, context: RoleContext
    ) -> tuple[PlanOf | None, tuple[Finding, ...]]:
        """The plan, or None if nothing is requested or possible; and findings. Raises nothing."""

    def beside(
        self, plan: PlanOf | None, settings: SettingsOf, facts: NodeFacts, plane: NodeFacts
    ) -> Iterable[Finding]:
        """Findings about a host that need the facts of the first control plane."""
        return ()

    def context_after(
        self, settings: SettingsOf, plan: PlanOf | None, context: RoleContext
    ) -> RoleContext:
        """The context of the roles that run later."""
        return context

    def faults(self, plan: PlanOf | None, context: RoleContext) -> Faults:
        """The faults of the host. Also called on hosts without a GPU."""
        return NO_FAULTS

    @abstractmethod
    def converged(self, plan: PlanOf, driver: str | None) -> bool:
        """True if no step is needed while `driver` is the loaded version."""

    @abstractmethod
    def steps(self, plan: PlanOf, context: RoleContext) -> list[str]:
        """The steps, one sentence each; none for a converged host."""

    @abstractmethod
    def describe(self, plan: PlanOf) -> dict[str, Any]:
        """The plan as data for preflight's JSON: what, from what to what, and why."""

    def outcome(
        self, settings: SettingsOf, plan: PlanOf, context: RoleContext
    ) -> RoleResult | None:
        """The result to record on a converged host, or None. `context`: after all roles."""
        return None

    @abstractmethod
    def versions(self, plan: PlanOf, entry: EntryOf) -> tuple[str | None, str | None]:
        """Version before and after. None if not installed, or if only the repository knows it."""

    def installed(self, facts: NodeFacts, catalog: Any) -> str | None:
        """Version on a host without a plan of the role, or None if not installed or not known."""
        return None

    def files(self, plan: PlanOf) -> tuple[FileWrite, ...]:
        """Files that the role writes as a whole."""
        return ()

    def edits(self, plan: PlanOf) -> tuple[FileWrite, ...]:
        """Files of other programs that the role edits, with their new content; empty if removed."""
        return ()

    def repository(self, plan: PlanOf) -> RepositoryPlan | None:
        """The package repository that the role adds."""
        return getattr(plan, "repository", None)

    def impact(self, plan: PlanOf, context: RoleContext) -> Impact:
        """Interruptions, and files that are in neither `files`, `edits` nor `repository`."""
        return NO_IMPACT

    def transactions(self, plan: PlanOf) -> tuple[PackageTransaction, ...]:
        """The role's package transactions, including those that are not needed."""
        transaction = getattr(plan, "transaction", None)
        return (transaction,) if transaction else ()

    def with_transactions(self, plan: Any, found: Sequence[PackageTransaction]) -> Any:
        """The plan with its transactions as the repositories resolve them, in the same order."""
        return replace(plan, transaction=found[0]) if found else plan

    def components(self, plan: PlanOf) -> Components:
        """The components that the steps install, besides those that are packages of
        combinations.yaml; "" for a version that only the repository knows."""
        return NO_COMPONENTS

    def runtimes(self, plan: PlanOf, facts: NodeFacts) -> dict[str, RuntimeState]:
        """State of the container runtimes that the role configures, for the report."""
        return {}

    def described(self, facts: NodeFacts, catalog: Any) -> Iterable[tuple[str, Any]]:
        """Keys and values that describe the role on a host, for `gpufleet doctor --json`."""
        return ()

    # An unfinished run.

    def main_packages(self, catalog: Any) -> tuple[str, ...]:
        """Packages with the role's version, or () for the version that most packages have."""
        return ()

    def began(
        self, facts: NodeFacts, written: tuple[str, ...], images: tuple[str, ...], catalog: Any
    ) -> bool:
        """True if an unfinished run began the role, judged by the host, written files and pulled
        images. Package transactions are known without this method."""
        return False

    # The removal of everything but the packages and files in the role's entry in the record.

    left_by_users: ClassVar[tuple[str, ...]] = ()  # codes of findings about users' changes

    def writes(self, path: str, catalog: Any) -> bool:
        """True if the role writes this file. Called when some roles are removed and others stay."""
        return False

    def own_files(self, facts: NodeFacts) -> dict[str, str]:
        """Path -> sha256 of files that the role's steps write and do not record."""
        return {}

    def services(self, entry: EntryOf) -> tuple[str, ...]:
        """Units that prove that a role without packages is installed."""
        return ()

    def removal(self, settings: SettingsOf, context: RemovalContext[EntryOf]) -> Removal | None:
        """The rest of the removal, or None if nothing else is removed."""
        return None

    def runtimes_left(self, removal: Any) -> dict[str, RuntimeState]:
        """The container runtimes that lose gpufleet's settings."""
        return {}

    def needs_left(self, removal: Any) -> list[str]:
        """Manual steps after the removal."""
        return []


AnyRole = Role[Any, Any, Any]


def prefix_role(prefix: str, done: Mapping[str, object]) -> list[str]:
    """The sentences of `done` that apply, each after the role's name."""
    return [f"{prefix}: {step}" for step, needed in done.items() if needed]


def repository_name(plan: RepositoryPlan) -> str:
    """The name of a repository, or "" if the packages are the distribution's."""
    return plan.repository.name if plan.repository else ""
