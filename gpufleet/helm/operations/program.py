"""Finds the helm program on this machine, or downloads it and verifies its checksum."""

from __future__ import annotations

import hashlib
import platform
import re
import shutil
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path

from gpufleet.core.limits import HELM
from gpufleet.core.paths import expand_user_path
from gpufleet.core.process import Process
from gpufleet.core.versions import version_tuple
from gpufleet.helm.findings import releases as findings
from gpufleet.helm.findings.charts import DIGEST_WRONG
from gpufleet.helm.release import HelmVersion
from gpufleet.helm.strategy import HelmCatalog
from gpufleet.kube.operations.access import ClusterProblem
from gpufleet.packages.operations.download import DownloadFailed, download_url

_VERSION = re.compile(r"v(\d+)\.(\d+)")
_MACHINES = {"x86_64": "amd64", "amd64": "amd64", "aarch64": "arm64", "arm64": "arm64"}
ANSWERS_IN = 20  # time limit of `helm version`, in seconds


@dataclass(frozen=True, slots=True)
class HelmProgram:
    """A usable helm program."""

    path: Path
    version: HelmVersion


def find_helm(wanted: str, catalog: HelmCatalog, cache: Path, site: str = "") -> HelmProgram:
    """The helm at `wanted`, on PATH, or downloaded into `cache`, in this order.

    An unusable helm on PATH, for example an old one, stays unchanged; the downloaded one is used
    instead. `site`: URL of the folder to download from, or "" for the catalog's. Raises
    ClusterProblem if no helm is found, or if `wanted` is unusable.
    """
    if wanted:
        return _checked(expand_user_path(wanted), catalog)
    on_path = shutil.which("helm")
    looked = "cluster_helm is not set, and helm is not on PATH"
    if on_path:
        try:
            return _checked(Path(on_path), catalog)
        except ClusterProblem as problem:
            looked = problem.findings[0].message.rstrip(".")
    return _checked(_fetched(catalog, cache, site, looked), catalog)


def _checked(path: Path, catalog: HelmCatalog) -> HelmProgram:
    oldest = catalog.oldest.version

    def unusable(reason: str) -> ClusterProblem:
        why = f"{path} cannot be used: {' '.join(reason.split())}"
        return ClusterProblem(findings.HELM_MISSING(reason=why, oldest=oldest))

    try:
        done = Process([str(path), "version", "--short"], timeout=ANSWERS_IN).wait()
    except OSError as error:
        raise unusable(str(error)) from error
    if done.code is None:
        raise unusable(f"no response within {ANSWERS_IN} s")
    match = _VERSION.search(done.stdout)
    if not done.ok or not match:
        raise unusable(f"it does not report a version: {done.stderr or done.stdout}")
    version = HelmVersion(int(match[1]), int(match[2]))
    if (version.major, version.minor) < version_tuple(oldest):
        raise unusable(f"expected helm {oldest} or newer, found {version}")
    return HelmProgram(path, version)


def _fetched(catalog: HelmCatalog, cache: Path, site: str, looked: str) -> Path:
    """The catalog's helm in `cache`, next to its archive. Each use compares the archive with the
    catalog's checksum, and the program with the archive.

    `looked`: the places without helm, as text.
    """
    archive = helm_archive(catalog, cache, site, looked)
    with tarfile.open(archive, mode="r:gz") as files:
        source = files.extractfile(catalog.download.member.format(platform=_platform()))
        assert source is not None, "the archive with that checksum has it"
        program = source.read()
    target = archive.with_name("helm")
    if not target.is_file() or target.read_bytes() != program:
        _write(target, program, 0o755)
    return target


def helm_archive(catalog: HelmCatalog, cache: Path, site: str, looked: str) -> Path:
    """The archive of the catalog's helm for this machine, in `cache`. `site` and `looked`: as for
    `find_helm` and `_fetched`. Raises ClusterProblem."""
    wanted = catalog.download

    def missing(reason: str) -> ClusterProblem:
        oldest = catalog.oldest.version
        why = f"{looked}; it cannot be downloaded: {reason}"
        return ClusterProblem(findings.HELM_MISSING(reason=why, oldest=oldest))

    checksum = wanted.sha256.get(_platform())
    if checksum is None:
        raise missing(f"the catalog has no checksum of helm for {_platform()}")
    name = wanted.archive.format(version=wanted.version, platform=_platform())
    archive = cache / f"helm-{wanted.version}" / name
    data = archive.read_bytes() if archive.is_file() else b""
    if hashlib.sha256(data).hexdigest() != checksum:
        url = f"{site or wanted.site}/{name}"
        try:
            data = download_url(url, HELM)
        except DownloadFailed as error:
            raise missing(f"{url}: {error}") from error
        found = hashlib.sha256(data).hexdigest()
        if found != checksum:
            why = f"expected {checksum}, found {found}"
            raise ClusterProblem(DIGEST_WRONG(what="helm", source=url, error=why))
        _write(archive, data, 0o644)
    return archive


def _platform() -> str:
    machine = platform.machine()
    return f"{platform.system().lower()}-{_MACHINES.get(machine, machine)}"


def _write(target: Path, data: bytes, mode: int) -> None:
    """Write atomically: a killed run leaves no partial file."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        partial = Path(folder) / target.name
        partial.write_bytes(data)
        partial.chmod(mode)
        partial.replace(target)
