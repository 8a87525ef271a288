"""Resolves the exporter for a host: versions, packages, image. Never raises."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from gpufleet.core.distributions import Distribution
from gpufleet.core.findings import Finding
from gpufleet.core.versions import version_tuple
from gpufleet.exporter import findings as kinds
from gpufleet.exporter.models import ExporterCatalog
from gpufleet.exporter.settings import ExporterSettings


@dataclass(frozen=True, slots=True)
class ExporterChoice:
    """The exporter for a host, as packages and as a container, and why."""

    version: str
    dcgm: str  # the matching version of DCGM, or ""
    dcgm_packages: tuple[str, ...]  # all at DCGM's version
    exporter_packages: tuple[str, ...]  # at the exporter's version, or one with that prefix
    image: str
    no_packages: str  # why the host can have no packages, or ""
    reason: str
    findings: tuple[Finding, ...] = ()


def resolve_exporter(
    catalog: ExporterCatalog,
    *,
    distribution: Distribution | str,
    branch: int,
    devices: Sequence[int],
    settings: ExporterSettings,
) -> ExporterChoice:
    """Resolve the exporter for a host with a driver of `branch`. `devices`: PCI ids of its GPUs."""
    exporter = catalog.exporter
    version = settings.version or exporter.newest
    known = exporter.version(version)
    dcgm = settings.dcgm_version or (known.dcgm if known else "")
    image = exporter.image
    tag = image.tag.format(dcgm=dcgm, version=version)
    refusal, doubt = _packages_refused(distribution)
    asked = "is requested (exporter_version)" if settings.version else "is the catalog's"
    return ExporterChoice(
        version=version,
        dcgm=dcgm,
        dcgm_packages=exporter.packages.dcgm + _cuda_packages(catalog, branch, devices),
        exporter_packages=exporter.packages.exporter,
        image=settings.image or f"{image.name}:{tag}",
        no_packages=refusal,
        reason=f"dcgm-exporter {version} {asked}; it goes with DCGM {dcgm or '?'}.{doubt}",
        findings=tuple(_findings(catalog, version, dcgm)),
    )


def _packages_refused(distribution: Distribution | str) -> tuple[str, str]:
    """Why no packages exist, or "", and a note if they are only documented."""
    if isinstance(distribution, str):
        return f"none is known for {distribution}", ""
    title, packaging = distribution.title, distribution.exporter
    if packaging is None:
        return f"none is known for {title}", ""
    if packaging.packages == "none":
        return f"{title} has none ({packaging.reason})", ""
    seen = packaging.packages == "seen"
    return "", "" if seen else f" Its package for {title} is documented, not seen."


def _cuda_packages(
    catalog: ExporterCatalog, branch: int, devices: Sequence[int]
) -> tuple[str, ...]:
    generations = {g.name for device in devices if (g := catalog.generation(device))}
    serving = (entry for entry in catalog.exporter.cuda if entry.covers(branch))
    fitting = (e for e in serving if not e.generations or generations & set(e.generations))
    return tuple(dict.fromkeys(name for entry in fitting for name in entry.names))


def _findings(catalog: ExporterCatalog, version: str, dcgm: str) -> Iterator[Finding]:
    exporter = catalog.exporter
    known = exporter.version(version)
    if not dcgm:
        listed = ", ".join(entry.version for entry in exporter.versions)
        yield kinds.UNKNOWN_VERSION(version=version, date=exporter.as_of, known=listed)
    number = version_tuple(version)
    problems = [f"has {a.cve}" for a in exporter.security if number < version_tuple(a.fixed)]
    if known and known.warning:
        problems.append(known.warning)
    if problems:
        yield kinds.VERSION_CAUTION(
            version=version, problem=" and ".join(problems), newest=exporter.newest
        )
