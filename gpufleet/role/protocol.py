"""A role of a node as the core knows it: settings, plan, steps, record, findings. Pure."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, TypeVar

from gpufleet.core.findings import Finding
from gpufleet.core.node_roles import RuntimeState
from gpufleet.core.settings import RoleSettings
from gpufleet.facts.model import NodeFacts
from gpufleet.facts.record import RoleEntry
from gpufleet.host.file_write import FileWrite
from gpufleet.packages.logins import Logins
from gpufleet.packages.repository import RepositoryPlan
from gpufleet.packages.transaction import PackageTransaction
from gpufleet.role.impact import NO_IMPACT, Impact
from gpufleet.role.place import NO_PLACE, Place, Question
from gpufleet.role.result import RoleResult

SettingsOf = TypeVar("SettingsOf", bound=RoleSettings)
PlanOf = TypeVar("PlanOf")
EntryOf = TypeVar("EntryOf", bound=RoleEntry)


@dataclass(frozen=True, slots=True)
class RoleContext:
    """What a role is planned from: the host, and what the roles before it leave there."""

    facts: NodeFacts
    catalog: Any  # has the type that the role asks for
    logins: Mapping[str, Logins] = field(default_factory=dict)  # of package mirrors, by role
    spared: frozenset[int] = frozenset()  # processes on the GPUs that gpufleet itself stops
    driver: str | None = None  # version that is loaded then, where that is known before the run
    installs: str | None = None  # version or branch of the driver, where a role looks after it
    loads_driver: bool = False  # a step of the run loads the driver's modules
    repository: RepositoryPlan | None = None  # NVIDIA's, where the host has it by then
    served: frozenset[str] = frozenset()  # runtimes that have the runtime nvidia by then
    texts: Mapping[str, str] = field(default_factory=dict)  # files that roles change, by then
    place: Place = NO_PLACE  # in the inventory
    lock_timeout: int = 300  # seconds to wait for another package manager
    skew: int = 0  # seconds by which the host's clock is ahead of this machine's
    required: Mapping[str, str] = field(default_factory=dict)  # of all: `requires`
    gpus: int | None = None  # node_gpus

    @property
    def branch(self) -> str:
        """The branch of the driver; "" where none is known."""
        return (self.installs or self.driver or "").split(".")[0]


@dataclass(frozen=True, slots=True)
class Faults:
    """What does not work on a host, as warnings. `repaired`: the steps put it right; `left`: they
    do not, and a run fails at its end."""

    repaired: tuple[Finding, ...] = ()
    left: tuple[Finding, ...] = ()

    @property
    def all(self) -> tuple[Finding, ...]:
        return (*self.repaired, *self.left)

    def __add__(self, other: Faults) -> Faults:
        return Faults((*self.repaired, *other.repaired), (*self.left, *other.left))


NO_FAULTS = Faults()


@dataclass(frozen=True, slots=True)
class RemovalContext(Generic[EntryOf]):
    """What the removal of a role is planned from."""

    facts: NodeFacts
    catalog: Any
    entry: EntryOf  # from the record, and from the notes of an unfinished run
    recorded: bool  # the record has the role
    spared: frozenset[int] = frozenset()  # processes on the GPUs that gpufleet itself stops
    written: tuple[str, ...] = ()  # every file of gpufleet's that goes
    place: Place = NO_PLACE  # in the inventory


class Removal:
    """What a role removes besides packages and recorded files."""

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
        """The facts that roles which are removed later find."""
        return facts

    def describe(self) -> dict[str, Any]:
        """The rest of it as data for the JSON report."""
        return {}


class Role(ABC, Generic[SettingsOf, PlanOf, EntryOf]):
    """One role. The defaults fit a role without the part."""

    name: ClassVar[str]  # of its room, its entry in the record and its column in the report
    folder: ClassVar[str] = ""  # in roles/, where it is not the name
    needs_gpu: ClassVar[bool] = True  # it does nothing on a host without GPUs
    settings: type[SettingsOf]
    entry: type[EntryOf]

    # Settings, and what the facts have to hold because of them.

    def contradictions(self, settings: SettingsOf) -> list[Finding]:
        """Conflicting settings."""
        return []

    def logins(self, settings: SettingsOf) -> tuple[str, str | None] | None:
        """The key that names a file of logins for package mirrors, and that file."""
        return None

    def paths(self, settings: SettingsOf) -> tuple[str, ...]:
        """Further files to read."""
        return ()

    def ports(self, settings: SettingsOf) -> tuple[int, ...]:
        """TCP ports whose listeners are read."""
        return ()

    def requires(self, settings: SettingsOf, catalog: Any) -> Mapping[str, str]:
        """Roles that must have done their work, by name, with the oldest version that will do ("":
        any), and the kubelet's "cgroup-driver"."""
        return {}

    def question(self, settings: SettingsOf, facts: NodeFacts, place: Place) -> Question | None:
        """What the plan has to know of other hosts."""
        return None

    # The plan, and what is shown of it.

    def spared(self, context: RoleContext) -> frozenset[int]:
        """Processes on the GPUs that are gpufleet's own."""
        return frozenset()

    @abstractmethod
    def plan(
        self, settings: SettingsOf, context: RoleContext
    ) -> tuple[PlanOf | None, tuple[Finding, ...]]:
        """The plan; None if nothing is requested or possible. Raises nothing."""

    def beside(
        self, plan: PlanOf | None, settings: SettingsOf, facts: NodeFacts, plane: NodeFacts
    ) -> Iterable[Finding]:
        """Findings about a host, by the facts of the first control plane."""
        return ()

    def context_after(
        self, settings: SettingsOf, plan: PlanOf | None, context: RoleContext
    ) -> RoleContext:
        """The context of the roles that follow."""
        return context

    def faults(self, plan: PlanOf | None, context: RoleContext) -> Faults:
        """What does not work; asked on hosts without a GPU, too."""
        return NO_FAULTS

    @abstractmethod
    def converged(self, plan: PlanOf, driver: str | None) -> bool:
        """Whether there is nothing to do while `driver` is the loaded one."""

    @abstractmethod
    def steps(self, plan: PlanOf, context: RoleContext) -> list[str]:
        """The steps, one sentence each; none for a converged host."""

    @abstractmethod
    def describe(self, plan: PlanOf) -> dict[str, Any]:
        """The plan as data for preflight's JSON: what, from what to what, and why."""

    def outcome(
        self, settings: SettingsOf, plan: PlanOf, context: RoleContext
    ) -> RoleResult | None:
        """What a run on a converged host records; None: nothing. `context`: after all roles."""
        return None

    @abstractmethod
    def versions(self, plan: PlanOf, entry: EntryOf) -> tuple[str | None, str | None]:
        """Version before and after; None: not installed, or known only to the repository."""

    def files(self, plan: PlanOf) -> tuple[FileWrite, ...]:
        """Files that the role writes."""
        return ()

    def edits(self, plan: PlanOf) -> tuple[FileWrite, ...]:
        """Files of others that the role edits, as they are afterwards; empty if it removes one."""
        return ()

    def repository(self, plan: PlanOf) -> RepositoryPlan | None:
        """The package repository that it adds."""
        return None

    def impact(self, plan: PlanOf, context: RoleContext) -> Impact:
        """What it interrupts, and writes beside `files`, `edits` and its `repository`."""
        return NO_IMPACT

    def transactions(self, plan: PlanOf) -> tuple[PackageTransaction, ...]:
        """Its package transactions, also those that are not needed."""
        return ()

    def with_transactions(self, plan: PlanOf, found: Sequence[PackageTransaction]) -> PlanOf:
        """The plan with its transactions as the repositories have them, in the same order."""
        return plan

    def runtimes(self, plan: PlanOf, facts: NodeFacts) -> dict[str, RuntimeState]:
        """State of the container runtimes that it configures, for the report."""
        return {}

    def described(self, facts: NodeFacts, catalog: Any) -> Iterable[tuple[str, Any]]:
        """Keys and values of what a host has of it, for `gpufleet doctor --json`."""
        return ()

    # An unfinished run.

    def main_packages(self, catalog: Any) -> tuple[str, ...]:
        """Packages whose version is the role's; (): the version that most of them have."""
        return ()

    def began(
        self, facts: NodeFacts, written: tuple[str, ...], images: tuple[str, ...], catalog: Any
    ) -> bool:
        """Whether an unfinished run began it, by the host, written files and pulled images. Package
        transactions are known without it."""
        return False

    # The removal. Packages and files of the role's entry in the record go without its help.

    left_by_users: ClassVar[tuple[str, ...]] = ()  # codes of findings: a user's change stays

    def writes(self, path: str, catalog: Any) -> bool:
        """Whether a file is one that the role writes; asked where it is removed alone."""
        return False

    def own_files(self, facts: NodeFacts) -> dict[str, str]:
        """Path -> sha256 of files that its steps write without a record."""
        return {}

    def services(self, entry: EntryOf) -> tuple[str, ...]:
        """Units that prove the role is installed, for a role without packages."""
        return ()

    def removal(self, settings: SettingsOf, context: RemovalContext[EntryOf]) -> Removal | None:
        """What else is removed; None for nothing."""
        return None

    def runtimes_left(self, removal: Any) -> dict[str, RuntimeState]:
        """Container runtimes that lose gpufleet's settings."""
        return {}

    def needs_left(self, removal: Any) -> list[str]:
        """Manual steps after the removal."""
        return []


AnyRole = Role[Any, Any, Any]


def named(prefix: str, done: Mapping[str, object]) -> list[str]:
    """The sentences of `done` that apply, with the role's name before them."""
    return [f"{prefix}: {step}" for step, needed in done.items() if needed]


def repository_name(plan: RepositoryPlan) -> str:
    """What a repository is called; "" for the distribution's own."""
    return plan.repository.name if plan.repository else ""
