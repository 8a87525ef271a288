"""The helm program on the machine that gpufleet runs on: found, or fetched by its checksum."""

from __future__ import annotations

import hashlib
import io
import os
import platform
import re
import shutil
import subprocess
import tarfile
from dataclasses import dataclass
from pathlib import Path

import urllib3

from gpufleet.catalog.helm_models import HelmCatalog
from gpufleet.catalog.versions import release
from gpufleet.findings import releases as findings
from gpufleet.operations.cluster_access import ClusterProblem
from gpufleet.plan.release_model import HelmVersion

_VERSION = re.compile(r"v(\d+)\.(\d+)")
_MACHINES = {"x86_64": "amd64", "amd64": "amd64", "aarch64": "arm64", "arm64": "arm64"}
ANSWERS_IN = 20  # seconds that `helm version` may take
FETCHED_IN = urllib3.Timeout(connect=10, read=60)


@dataclass(frozen=True, slots=True)
class HelmProgram:
    """A helm that can be called."""

    path: Path
    version: HelmVersion


def find_helm(wanted: str, catalog: HelmCatalog, cache: Path) -> HelmProgram:
    """The helm at `wanted`, on PATH, or fetched into `cache`, in this order.

    Raises ClusterProblem where there is none, or one that cannot be used.
    """
    if wanted:
        return _checked(Path(wanted).expanduser(), catalog)
    on_path = shutil.which("helm")
    if on_path:
        return _checked(Path(on_path), catalog)
    return _checked(_fetched(catalog, cache), catalog)


def _checked(path: Path, catalog: HelmCatalog) -> HelmProgram:
    oldest = catalog.oldest.version

    def unusable(reason: str) -> ClusterProblem:
        return ClusterProblem(
            findings.HELM_UNUSABLE(path=path, reason=" ".join(reason.split()), oldest=oldest)
        )

    try:
        done = subprocess.run(
            [path, "version", "--short"],
            capture_output=True,
            text=True,
            timeout=ANSWERS_IN,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise unusable(str(error)) from error
    match = _VERSION.search(done.stdout)
    if done.returncode or not match:
        raise unusable(f"it does not tell its version: {done.stderr or done.stdout}")
    version = HelmVersion(int(match[1]), int(match[2]))
    if (version.major, version.minor) < release(oldest):
        raise unusable(f"it is helm {version}, and gpufleet needs {oldest} or newer")
    return HelmProgram(path, version)


def _fetched(catalog: HelmCatalog, cache: Path) -> Path:
    """The helm of the catalog, in `cache`; its checksum is verified before it is unpacked."""
    download = catalog.download
    target = cache / f"helm-{download.version}" / "helm"
    if target.exists():
        return target
    system = f"{platform.system().lower()}-{_MACHINES.get(platform.machine(), platform.machine())}"
    checksum = download.sha256.get(system)
    if checksum is None:
        raise _missing(catalog, f"the catalog has no checksum of helm for {system}")
    url = download.url.format(version=download.version, platform=system)
    try:
        answer = urllib3.PoolManager().request("GET", url, timeout=FETCHED_IN, retries=2)
    except urllib3.exceptions.HTTPError as error:
        raise _missing(catalog, f"{url}: {error}") from error
    if answer.status != 200:
        raise _missing(catalog, f"{url} answers {answer.status}")
    found = hashlib.sha256(answer.data).hexdigest()
    if found != checksum:
        raise ClusterProblem(findings.HELM_CHECKSUM(url=url, found=found, wanted=checksum))
    _unpack(answer.data, download.member.format(platform=system), target)
    return target


def _missing(catalog: HelmCatalog, reason: str) -> ClusterProblem:
    looked = "cluster_helm is not set, and there is none on PATH"
    return ClusterProblem(
        findings.HELM_MISSING(looked=looked, reason=reason, oldest=catalog.oldest.version)
    )


def _unpack(archive: bytes, member: str, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(f"helm.{os.getpid()}.part")
    with tarfile.open(fileobj=io.BytesIO(archive), mode="r:gz") as files:
        source = files.extractfile(member)
        assert source is not None, f"{member} is a file in the archive that has the right checksum"
        partial.write_bytes(source.read())
    partial.chmod(0o755)
    partial.replace(target)
