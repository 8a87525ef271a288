"""Chart archives: from a repository, an OCI registry or a file, read into ChartContent."""

from __future__ import annotations

import hashlib
import tarfile
import tempfile
import zlib
from pathlib import Path

from gpufleet.facts.chart import BrokenChart, ChartContent, parse_chart
from gpufleet.findings import Finding
from gpufleet.findings import releases as findings
from gpufleet.operations.cluster_access import ClusterProblem
from gpufleet.operations.helm import Helm
from gpufleet.plan.helm_output import error_line
from gpufleet.plan.release_model import ChartSource, Release

PULLED_IN = 180  # seconds that a download may take


def chart_archive(release: Release, helm: Helm, cache: Path) -> Path:
    """The archive of the release's chart on this machine. Raises ClusterProblem.

    A version that was fetched once is kept: a chart's version stands for its content.
    """
    source = release.source
    if source.kind == "archive":
        path = Path(source.location)
        if not path.is_file():
            raise ClusterProblem(_unreachable(release, "there is no such file"))
        return path
    key = hashlib.sha256(source.location.encode()).hexdigest()[:16]
    folder = cache / "charts" / key
    target = folder / f"{release.chart}-{release.version}.tgz"
    if not target.exists():
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder) as partial:
            _pull(release, helm, Path(partial)).replace(target)
    return target


def _pull(release: Release, helm: Helm, folder: Path) -> Path:
    words = ["pull", *_reference(release.chart, release.source), "--version", release.version]
    result = helm.run([*words, "--destination", str(folder)], timeout=PULLED_IN)
    if not result.ok:
        late = f"no answer within {PULLED_IN} s"
        reason = late if result.code is None else error_line(result.stderr)
        raise ClusterProblem(_unreachable(release, reason))
    return next(folder.glob("*.tgz"))


def _reference(chart: str, source: ChartSource) -> list[str]:
    return [source.location] if source.kind == "oci" else [chart, "--repo", source.location]


def _unreachable(release: Release, reason: str) -> Finding:
    return findings.CHART_UNREACHABLE(
        chart=release.chart,
        version=release.version,
        source=release.source.location,
        error=reason,
    )


def read_chart(archive: Path, release: Release) -> ChartContent:
    """What is in an archive. Raises ClusterProblem where it is not the chart that it should be."""
    try:
        content = parse_chart(_files(archive))
    except (BrokenChart, tarfile.TarError, OSError, EOFError, zlib.error) as error:
        raise ClusterProblem(_broken(archive, release, str(error))) from error
    wanted = release.version.removeprefix("v")
    if content.name != release.chart or content.version.removeprefix("v") != wanted:
        reason = f"it holds {content.name} {content.version}"
        raise ClusterProblem(_broken(archive, release, reason))
    return content


def _files(archive: Path) -> dict[str, bytes]:
    """The files of an archive by their path inside the chart's folder."""
    found = {}
    with tarfile.open(archive) as files:
        for member in files:
            source = files.extractfile(member) if member.isfile() else None
            if source:
                found[member.name.removeprefix("./").split("/", 1)[-1]] = source.read()
    return found


def _broken(archive: Path, release: Release, reason: str) -> Finding:
    return findings.CHART_BROKEN(
        path=archive, chart=release.chart, version=release.version, reason=reason
    )
