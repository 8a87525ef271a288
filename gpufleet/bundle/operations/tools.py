"""What the controller needs in a closed network: helm, and the wheels of gpufleet."""

from __future__ import annotations

import json
import platform
from collections.abc import Iterator
from contextlib import suppress
from importlib.metadata import distribution, distributions
from pathlib import Path

from packaging.version import InvalidVersion, Version

from gpufleet.bundle.models import (
    WHEELS,
    BundledRepository,
    BundleFile,
    BundlePart,
    LackingItem,
    place_of,
)
from gpufleet.bundle.operations.store import file_digest, show_step, store_path, work_folder
from gpufleet.core.process import Process
from gpufleet.core.python import python_module
from gpufleet.core.quoting import quote_last_line
from gpufleet.core.secrets import plain_urls
from gpufleet.helm.operations.cluster import helm_cache
from gpufleet.helm.operations.program import helm_archive
from gpufleet.helm.strategy import helm_catalog
from gpufleet.kube.operations.access import ClusterProblem

PIP_SECONDS = 1800
HELM_REMEDY = "Take your own helm along, and set cluster_helm."
WHEELS_REMEDY = "Build the wheels as closed-network.md shows, or use the container image."


def store_helm(folder: Path, site: str) -> BundlePart:
    """Store the catalog's helm for machines like this one. `site`: URL of the folder to download
    from, or "" for the project's. Raises Stopped."""
    wanted = helm_catalog().download
    try:
        archive = helm_archive(helm_catalog(), helm_cache(), site, "a bundle has helm's archive")
    except ClusterProblem as problem:
        item = LackingItem("helm", problem.findings[0].message, HELM_REMEDY)
        return BundlePart(lacking=(item,))
    source = plain_urls(f"{site or wanted.site}/{archive.name}")
    known = {"name": "helm", "version": wanted.version, "architecture": platform.machine()}
    file = BundleFile(
        f"{place_of(wanted.site)}/{archive.name}",
        file_digest(archive),
        archive.stat().st_size,
        source,
        "helm",
        **known,
    )
    store_path(folder, file, archive)
    place = BundledRepository(place_of(wanted.site), wanted.site, "cluster_helm_url")
    return BundlePart((file,), (place,))


def store_wheels(folder: Path) -> BundlePart:
    """Store gpufleet's own wheel, and those of the packages that it runs with here, for this
    version of Python and this platform. Raises Stopped."""
    source = own_source()
    if not source:
        item = LackingItem("wheels of gpufleet", "pip has no record of its source", WHEELS_REMEDY)
        return BundlePart(lacking=(item,))
    with work_folder(folder, "a wheel of gpufleet") as work:
        show_step("Building wheels of gpufleet")
        pins = work / "constraints.txt"
        pins.write_text("".join(_constraints()))
        command = [*python_module("pip"), "wheel", "--wheel-dir", str(work), "--quiet"]
        command += ["--disable-pip-version-check", "--constraint", str(pins), source]
        done = Process(command, timeout=PIP_SECONDS, bound=True).wait()
        if not done.ok:
            why = done.why or quote_last_line(done.stderr) or "pip failed"
            item = LackingItem("wheels of gpufleet", f"pip: {why}", WHEELS_REMEDY)
            return BundlePart(lacking=(item,))
        return BundlePart(tuple(_wheel(folder, path) for path in sorted(work.glob("*.whl"))))


def _constraints() -> Iterator[str]:
    """One line for each package that is installed here."""
    for each in distributions():
        with suppress(InvalidVersion, TypeError):  # TypeError: without a version
            yield f"{each.name}=={Version(each.version)}\n"


def _wheel(folder: Path, path: Path) -> BundleFile:
    """Source of the name: https://packaging.python.org/en/latest/specifications/binary-distribution-format/
    (read 2026-11-30)."""
    name, version = path.name.split("-")[:2]
    file = BundleFile(
        f"{WHEELS}/{path.name}", file_digest(path), path.stat().st_size, "", "wheel", name, version
    )
    store_path(folder, file, path)
    return file


def own_source() -> str:
    """Where pip got gpufleet from: a folder, an archive or a commit. "" if it found the name in an
    index or in a folder of wheels: a package of that name elsewhere may be another one.

    Source: https://packaging.python.org/en/latest/specifications/direct-url/ (read 2026-11-30)
    """
    text = distribution("gpufleet").read_text("direct_url.json")
    if not text:
        return ""
    origin = json.loads(text)
    url = str(origin["url"])
    if commit := origin.get("vcs_info"):
        return f"{commit['vcs']}+{url}@{commit['commit_id']}"
    return url
