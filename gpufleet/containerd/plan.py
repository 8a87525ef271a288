"""Whether and from where containerd is installed on one host. Pure."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

from gpufleet.containerd import findings as found
from gpufleet.containerd.models import Containerd, ContainerdCatalog
from gpufleet.containerd.record import ContainerdEntry
from gpufleet.containerd.settings import ContainerdSettings
from gpufleet.core.distributions import Distribution
from gpufleet.core.findings import Finding
from gpufleet.core.versions import version_tuple
from gpufleet.facts.distribution import distribution_of
from gpufleet.facts.files import HOME
from gpufleet.facts.model import ManagedFile, NodeFacts, Package, Runtime
from gpufleet.packages.repository import Repository, RepositoryPlan, plan_repository
from gpufleet.packages.transaction import Family
from gpufleet.role.protocol import RoleContext

NAME: Literal["containerd"] = "containerd"  # of the role, and of the runtime in the facts
BEGUN = f"{HOME}/containerd.before.begun"  # a transaction of an unrecorded run
PACKAGED = f"{HOME}/containerd.packaged"  # copy of a package's file that gpufleet replaced
_DISABLED = re.compile(r"^ *disabled_plugins *= *\[[^\]]*cri\b[^\]]*\]", re.MULTILINE)
PLAIN = "version = 2\n"  # every containerd since 1.3 reads it, with the CRI plugin on


@dataclass(frozen=True, slots=True)
class ContainerdPlan:
    """The steps of the role for one host that has no containerd, or gpufleet's."""

    package: str
    docker: bool  # it is Docker's
    minimum: str  # "": any version will do
    before: str | None  # installed version
    family: Family
    repository: RepositoryPlan
    config: str
    unit: str
    fresh: bool  # the file at `config` is the package's, if there is one
    settles: bool  # it is to be started, and recorded
    facts: NodeFacts  # of the host as it is after the role, as far as that is known
    reason: str

    @property
    def needed(self) -> bool:
        """The package is to be installed."""
        return self.family.needed

    def describe(self) -> dict[str, Any]:
        """The plan as data for preflight's JSON."""
        return {
            "package": self.package,
            "before": self.before,
            "installs": self.needed,
            "minimum": self.minimum,
            "reason": self.reason,
        }

    def facts_with(self, version: str, config: str | None) -> NodeFacts:
        """The host's facts once the package is there, with the text of its file."""
        return _with_runtime(self.facts, version, self.config, config)


@dataclass(frozen=True, slots=True)
class _Choice:
    package: str
    version: str  # at least; what it is is known once the repository is asked
    docker: bool
    reason: str


def plan_containerd(
    settings: ContainerdSettings, context: RoleContext
) -> tuple[ContainerdPlan | None, tuple[Finding, ...]]:
    """The plan of one host; None where no role needs containerd, or the host has one of its own.

    Never raises. Where none can be installed, the role that needs it says so.
    """
    catalog: ContainerdCatalog = context.catalog
    facts, known, minimum = context.facts, catalog.containerd, context.required.get(NAME)
    if minimum is None:
        return None, ()
    ours = BEGUN in facts.cluster_host.paths
    recorded = facts.provenance.entry(ContainerdEntry).packages
    there = next((name for name in known.packages if _is_installed(facts, name)), "")
    if NAME in facts.runtimes:
        if not there or not (ours or there in recorded):
            return None, ()
        return _installed(known, facts, there, minimum, settles=ours), ()
    system = distribution_of(facts.os, catalog.distributions)
    choices = list(_choices(known, system, minimum)) if system else []
    wanted = settings.install
    fitting = [each for each in choices if wanted in ("auto", _source(each))]
    if not fitting or system is None:
        asked = wanted in ("distribution", "docker")
        problem = found.SOURCE_MISSING(wanted=wanted, minimum=minimum)
        return None, ((problem,) if asked else ())
    return _missing(settings, known, facts, system, fitting[0], minimum)


def _choices(known: Containerd, system: Distribution, minimum: str) -> Iterator[_Choice]:
    """The packages that are new enough, the distribution's first."""
    for each in known.distributions:
        if system.code in each.codes and version_tuple(each.version) >= version_tuple(minimum):
            reason = f"The host has no containerd; {system.title} has one."
            yield _Choice(each.package, each.version, docker=False, reason=reason)
    docker = known.docker
    managers = {name for layout in docker.layouts for name in layout.managers}
    served = any(system.code in place.codes for place in docker.places)
    if served and system.manager in managers:
        newest = max(docker.version, minimum, key=version_tuple)
        reason = f"The host has no containerd; {docker.package} is Docker's."
        yield _Choice(docker.package, newest, docker=True, reason=reason)


def _source(choice: _Choice) -> str:
    return "docker" if choice.docker else "distribution"


def _missing(
    settings: ContainerdSettings,
    known: Containerd,
    facts: NodeFacts,
    system: Distribution,
    choice: _Choice,
    minimum: str,
) -> tuple[ContainerdPlan, tuple[Finding, ...]]:
    source = repository_of(settings, known, facts, system) if choice.docker else None
    repository = plan_repository(source, facts, wanted=True)
    file = facts.files.get(known.config)
    text = file.content if file else None
    plan = ContainerdPlan(
        package=choice.package,
        docker=choice.docker,
        minimum=minimum,
        before=None,
        family=_family(choice.package, needed=True),
        repository=repository,
        config=known.config,
        unit=known.unit,
        fresh=text is None and not (file and file.error),
        settles=True,
        facts=_with_runtime(facts, choice.version, known.config, text),
        reason=choice.reason,
    )
    return plan, repository.findings


def _installed(
    known: Containerd, facts: NodeFacts, package: str, minimum: str, *, settles: bool
) -> ContainerdPlan:
    """`settles`: an unrecorded run installed it, which may not have come to its configuration."""
    runtime = facts.runtimes[NAME]
    file = facts.files.get(known.config)
    text = file.content if file else None
    if settles and disables_cri(text):
        text = PLAIN
    after = _with_runtime(facts, runtime.version, known.config, text) if settles else facts
    return ContainerdPlan(
        package=package,
        docker=package == known.docker.package,
        minimum=minimum,
        before=facts.packages[package].upstream,
        family=_family(package, needed=False),
        repository=RepositoryPlan(None, None, needed=False),
        config=known.config,
        unit=known.unit,
        fresh=settles,
        settles=settles,
        facts=after,
        reason="gpufleet installed it.",
    )


def repository_of(
    settings: ContainerdSettings, known: Containerd, facts: NodeFacts, system: Distribution
) -> Repository:
    """Docker's repository for a distribution that it serves."""
    docker = known.docker
    place = next(each for each in docker.places if system.code in each.codes)
    layout = next(each for each in docker.layouts if system.manager in each.managers)
    base = f"{settings.repo_url or docker.base}/{place.folder}/"
    key, own = docker.keys[system.style], settings.repo_key_fingerprint
    return Repository(
        name=layout.name,
        manager=system.manager,
        url=base + place.path.format(architecture=facts.kernel.architecture),
        key_url=f"{base}{key.file}",
        key_fingerprints=(own,) if own else key.fingerprints,
        file=layout.file,
        keyring=layout.keyring,
        role="containerd",
        chosen=bool(settings.repo_url),
        signed_packages=layout.signed_packages,
        signed_metadata=layout.signed_metadata,
        suite=f"{facts.os.codename} stable" if system.manager == "apt" else "",
    )


def disables_cri(text: str | None) -> bool:
    """Whether a package's file disables the CRI plugin, as that of Docker's does."""
    return bool(_DISABLED.search(text or ""))


def _family(package: str, *, needed: bool) -> Family:
    return Family(
        title="containerd",
        packages=(package,),
        prefix="",
        exact=False,
        installed=(),
        needed=needed,
    )


def _is_installed(facts: NodeFacts, name: str) -> bool:
    return facts.packages.get(name, Package(name, "", "", "")).state == "installed"


def _with_runtime(facts: NodeFacts, version: str, path: str, text: str | None) -> NodeFacts:
    """The facts of a host whose containerd runs, with this configuration."""
    number = ".".join(str(part) for part in version_tuple(version))
    runtime = Runtime(NAME, number, f"{NAME}.service", path, running=True)
    digest = hashlib.sha256(text.encode()).hexdigest() if text is not None else ""
    there = facts.files.get(path)
    file = ManagedFile(path, text, there.mode if there else 0o644, digest)
    if there and there.content == text:
        file = there
    paths = facts.cluster_host.paths | {BEGUN}
    return replace(
        facts,
        runtimes={**facts.runtimes, NAME: runtime},
        files={**facts.files, path: file},
        cluster_host=replace(facts.cluster_host, paths=paths),
    )
