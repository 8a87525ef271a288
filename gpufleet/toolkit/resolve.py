"""Resolves the container toolkit's version for a host. Never raises."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from gpufleet.core.distributions import Distribution
from gpufleet.core.findings import Finding, by_severity
from gpufleet.core.versions import version_tuple
from gpufleet.driver.findings.choice import UNKNOWN_DISTRIBUTION
from gpufleet.packages.repository import Repository, repository_at
from gpufleet.toolkit.findings import choice as kinds
from gpufleet.toolkit.models import Toolkit, ToolkitCatalog
from gpufleet.toolkit.settings import ToolkitSettings


@dataclass(frozen=True, slots=True)
class ToolkitChoice:
    """The container toolkit version for a host, and why."""

    version: str
    packages: tuple[str, ...]  # all at `version`
    repository: Repository
    reason: str
    findings: tuple[Finding, ...] = ()

    @property
    def blocked(self) -> bool:
        """True if a finding says that the choice cannot be carried out."""
        return any(finding.blocks for finding in self.findings)


def resolve_toolkit(
    catalog: ToolkitCatalog,
    *,
    distribution: Distribution | str,
    architecture: str,
    settings: ToolkitSettings,
) -> ToolkitChoice:
    """The toolkit for one host; `distribution` and `architecture` as for `resolve_driver`."""
    toolkit = catalog.toolkit
    if isinstance(distribution, str):
        known = ", ".join(d.code for d in catalog.distributions)
        finding = UNKNOWN_DISTRIBUTION(distribution=distribution, known=known)
        return _refused(catalog, settings, finding)
    if architecture not in toolkit.architectures:
        known = ", ".join(toolkit.architectures)
        finding = kinds.TOOLKIT_ARCHITECTURE(architecture=architecture, known=known)
        return _refused(catalog, settings, finding)
    versions = [
        entry.version
        for entry in toolkit.versions
        if not _refuses(distribution, entry.version)
        and version_tuple(entry.version) <= version_tuple(toolkit.newest)
    ]
    newest = max(versions, key=version_tuple)
    version = settings.version or newest
    reason = f"Version {version} is the newest for {distribution.title}."
    if settings.version:
        reason = f"Version {version} is requested (toolkit_version)."
    return ToolkitChoice(
        version=version,
        packages=toolkit.packages.names,
        repository=_repository(catalog, distribution, architecture, settings),
        reason=reason,
        findings=by_severity(_findings(catalog, distribution, version, newest)),
    )


def _refused(catalog: ToolkitCatalog, settings: ToolkitSettings, finding: Finding) -> ToolkitChoice:
    repository = Repository("", "apt", "", "", (), "", "")
    version = settings.version or catalog.toolkit.newest
    return ToolkitChoice(version, (), repository, finding.message, (finding,))


def _refuses(distribution: Distribution, version: str) -> bool:
    """True if a version (as numbers: 1.19 covers 1.19.1, not 1.190) cannot be installed."""
    number = version_tuple(version)
    prefixes = (version_tuple(prefix) for prefix in distribution.toolkit.refused)
    return any(number[: len(prefix)] == prefix for prefix in prefixes)


def _repository(
    catalog: ToolkitCatalog,
    distribution: Distribution,
    architecture: str,
    settings: ToolkitSettings,
) -> Repository:
    source = catalog.toolkit.repository
    base = settings.repo_url or source.base
    own, known = settings.repo_key_fingerprint, source.key.fingerprints
    name = catalog.toolkit.architectures[architecture][distribution.style]
    return repository_at(
        f"{base}/{source.paths[distribution.style].format(architecture=name)}",
        f"{base}/{source.key.file}",
        [own] if own else known,
        distribution,
        source.layouts,
        role="toolkit",
        chosen=bool(settings.repo_url),
    )


def _findings(
    catalog: ToolkitCatalog, distribution: Distribution, version: str, newest: str
) -> Iterator[Finding]:
    toolkit, number, reason = catalog.toolkit, version_tuple(version), ""
    if _refuses(distribution, version):
        reason = distribution.toolkit.reason
    elif number < version_tuple(toolkit.oldest):
        reason = f"the oldest version in the repository is {toolkit.oldest}"
    if reason:
        yield kinds.TOOLKIT_REFUSED(
            version=version, title=distribution.title, reason=reason, newest=newest
        )
    elif version not in {entry.version for entry in toolkit.versions}:
        yield kinds.TOOLKIT_UNKNOWN_VERSION(
            version=version, date=toolkit.as_of, newest=toolkit.newest
        )
    yield from insecure_toolkit(version, toolkit)
    if not distribution.toolkit.tested:
        yield kinds.TOOLKIT_UNTESTED(title=distribution.title)


def insecure_toolkit(version: str, toolkit: Toolkit) -> Iterator[Finding]:
    """A finding if a version has known vulnerabilities."""
    number = version_tuple(version)
    known = [each for each in toolkit.security if number < version_tuple(each.fixed)]
    if known:
        cves = ", ".join(each.cve for each in known)
        fixed = max((each.fixed for each in known), key=version_tuple)
        yield kinds.TOOLKIT_INSECURE(version=version, cves=cves, fixed=fixed)
