"""Decides if containerd is installed on one host, and from which source. Pure."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

from gpufleet.containerd import findings as found
from gpufleet.containerd.models import Containerd, ContainerdCatalog, ContainerdEntry
from gpufleet.containerd.settings import ContainerdSettings
from gpufleet.core.distributions import Distribution
from gpufleet.core.findings import Finding
from gpufleet.core.versions import version_tuple
from gpufleet.facts.files import HOME
from gpufleet.facts.model import ManagedFile, NodeFacts, Package, Runtime
from gpufleet.packages.repository import (
    NO_REPOSITORY,
    Repository,
    RepositoryPlan,
    plan_repository,
    repository_at,
)
from gpufleet.packages.transaction import PackageTransaction
from gpufleet.role.protocol import RoleContext

NAME: Literal["containerd"] = "containerd"  # of the role, and of the runtime in the facts
CONTAINERD_BEGUN_PATH = f"{HOME}/containerd.before.begun"  # transaction of an unrecorded run
PACKAGED = f"{HOME}/containerd.packaged"  # copy of a package's file that gpufleet replaced
_DISABLED = re.compile(r"^ *disabled_plugins *= *\[[^\]]*cri\b[^\]]*\]", re.MULTILINE)
PLAIN = "version = 2\n"  # containerd since 1.3 reads it and enables the CRI plugin


@dataclass(frozen=True, slots=True)
class ContainerdPlan:
    """The steps of the role for one host without containerd, or with gpufleet's."""

    transaction: PackageTransaction
    minimum: str  # "": any version
    before: str | None  # installed version
    config: str
    unit: str
    fresh: bool  # the file at `config`, if any, is the package's
    settles: bool  # it must be started and recorded
    facts: NodeFacts  # expected facts of the host after the role
    reason: str

    @property
    def package(self) -> str:
        return self.transaction.packages[0]

    @property
    def needed(self) -> bool:
        """True if the package must be installed."""
        return self.transaction.needed

    @property
    def repository(self) -> RepositoryPlan:
        return self.transaction.repository

    def facts_with(self, version: str, config: str | None) -> NodeFacts:
        """The host's facts with the package installed, and with this text of its file."""
        return _with_runtime(self.facts, version, self.config, config)


def plan_containerd(
    settings: ContainerdSettings, context: RoleContext
) -> tuple[ContainerdPlan | None, tuple[Finding, ...]]:
    """The plan of one host. None if no role needs containerd, or if the host has another owner's.

    Never raises. If no package fits, the role that needs containerd reports it.
    """
    catalog: ContainerdCatalog = context.catalog
    facts, known, minimum = context.facts, catalog.containerd, context.required.get(NAME)
    if minimum is None:
        return None, ()
    begun = CONTAINERD_BEGUN_PATH in facts.cluster_host.paths
    recorded = facts.provenance.entry(ContainerdEntry).packages
    there = next((name for name in known.packages if _is_installed(facts, name)), "")
    if NAME in facts.runtimes:
        if not there or not (begun or there in recorded):
            return None, ()
        return _installed(known, context, there, minimum, begun=begun), ()
    system, wanted = facts.distribution, settings.install
    choices = list(_choices(known, system, minimum)) if system else []
    fitting = [
        each for each in choices if wanted in ("auto", "docker" if each[2] else "distribution")
    ]
    if not fitting or system is None:
        asked = wanted in ("distribution", "docker")
        offer = f'containerd_install is "{wanted}", which has no package for this distribution'
        problem = found.TOO_OLD_THERE(offer=offer, minimum=minimum)
        return None, ((problem,) if asked else ())
    package, version, docker, reason = fitting[0]
    source = repository_of(settings, known, facts, system) if docker else None
    repository = plan_repository(source, facts, wanted=True)
    file = facts.files.get(known.config)
    text = file.content if file else None
    plan = ContainerdPlan(
        transaction=_transaction(context, package, repository, needed=True),
        minimum=minimum,
        before=None,
        config=known.config,
        unit=known.unit,
        fresh=text is None and not (file and file.error),
        settles=True,
        facts=_with_runtime(facts, version, known.config, text),
        reason=reason,
    )
    return plan, repository.findings


def _choices(
    known: Containerd, system: Distribution, minimum: str
) -> Iterator[tuple[str, str, bool, str]]:
    """The packages that are new enough, the distribution's first: name, minimum version, True if it
    is Docker's, and the reason."""
    for each in known.distributions:
        if system.code in each.codes and version_tuple(each.version) >= version_tuple(minimum):
            reason = f"The host has no containerd; {system.title} has one."
            yield each.package, each.version, False, reason
    docker = known.docker
    managers = {name for layout in docker.layouts for name in layout.managers}
    served = any(system.code in place.codes for place in docker.places)
    if served and system.manager in managers:
        newest = max(docker.version, minimum, key=version_tuple)
        reason = f"The host has no containerd; {docker.package} is Docker's."
        yield docker.package, newest, True, reason


def _installed(
    known: Containerd, context: RoleContext, package: str, minimum: str, *, begun: bool
) -> ContainerdPlan:
    """`begun`: an unrecorded run installed it, and may have ended before configuring it; or a run
    installed the recorded version again."""
    facts = context.facts
    text = facts.texts.get(known.config)
    recorded = package in facts.provenance.entry(ContainerdEntry).packages
    works = facts.runtimes[NAME].running and not disables_cri(text)
    settles = begun and not (recorded and works)
    if settles and disables_cri(text):
        text = PLAIN
    version = facts.runtimes[NAME].version
    after = _with_runtime(facts, version, known.config, text) if settles else facts
    return ContainerdPlan(
        transaction=_transaction(context, package, NO_REPOSITORY, needed=False),
        minimum=minimum,
        before=facts.packages[package].upstream,
        config=known.config,
        unit=known.unit,
        fresh=settles,
        settles=settles,
        facts=after,
        reason="gpufleet installed it.",
    )


def _transaction(
    context: RoleContext, package: str, repository: RepositoryPlan, *, needed: bool
) -> PackageTransaction:
    return PackageTransaction(
        role=NAME,
        title=NAME,
        packages=(package,),
        facts=context.facts,
        needed=needed,
        patterns=(re.escape(package),),
        repository=repository,
        lock_timeout=context.lock_timeout,
    )


def repository_of(
    settings: ContainerdSettings, known: Containerd, facts: NodeFacts, system: Distribution
) -> Repository:
    """Docker's repository for a distribution that it serves."""
    docker = known.docker
    place = next(each for each in docker.places if system.code in each.codes)
    base = f"{settings.repo_url or docker.base}/{place.folder}/"
    key, own = docker.keys[system.style], settings.repo_key_fingerprint
    return repository_at(
        base + place.path.format(architecture=facts.kernel.architecture),
        f"{base}{key.file}",
        [own] if own else key.fingerprints,
        system,
        docker.layouts,
        role="containerd",
        chosen=bool(settings.repo_url),
        suite=f"{facts.os.codename} stable" if system.manager == "apt" else "",
    )


def disables_cri(text: str | None) -> bool:
    """True if a package's file disables the CRI plugin, as Docker's does."""
    return bool(_DISABLED.search(text or ""))


def _is_installed(facts: NodeFacts, name: str) -> bool:
    return facts.packages.get(name, Package(name, "", "", "")).state == "installed"


def _with_runtime(facts: NodeFacts, version: str, path: str, text: str | None) -> NodeFacts:
    """The facts of a host where containerd runs with this configuration."""
    number = ".".join(str(part) for part in version_tuple(version))
    runtime = Runtime(NAME, number, f"{NAME}.service", path, running=True)
    digest = hashlib.sha256(text.encode()).hexdigest() if text is not None else ""
    there = facts.files.get(path)
    file = ManagedFile(path, text, there.mode if there else 0o644, digest)
    if there and there.content == text:
        file = there
    paths = facts.cluster_host.paths | {CONTAINERD_BEGUN_PATH}
    return replace(
        facts,
        runtimes={**facts.runtimes, NAME: runtime},
        files={**facts.files, path: file},
        cluster_host=replace(facts.cluster_host, paths=paths),
    )
