"""deploys/gpu_cluster.py with charts from servers, and with a helm that it downloads."""

from __future__ import annotations

import hashlib
import platform
import tarfile
from pathlib import Path
from shutil import copy

import pytest

from gpufleet.helm.chart_choice import choose_charts, load_charts
from gpufleet.helm.operations import cluster as operations
from gpufleet.helm.strategy import helm_catalog
from gpufleet.kube.facts import ReleaseRef
from gpufleet.kube.operations.access import KubeAccess
from tests.cluster.conftest import KUBERNETES
from tests.cluster.serving import chart_repository
from tests.cluster.stacking import Bench
from tests.cluster.tiny import Site

PLUGIN, EXPORTER = "nvidia-device-plugin", "dcgm-exporter"
STACK = ("kube-prometheus-stack", "node-feature-discovery", PLUGIN, EXPORTER)
MACHINE = {"x86_64": "amd64", "aarch64": "arm64"}[platform.machine()]
SYSTEM = f"{platform.system().lower()}-{MACHINE}"
DOWNLOAD = helm_catalog().download
HELM_ARCHIVE = DOWNLOAD.archive.format(version=DOWNLOAD.version, platform=SYSTEM)


@pytest.fixture
def chosen(current: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the archives of the stack's charts only. Runs use a separate cache."""
    folder = tmp_path / "chosen"
    folder.mkdir()
    choices = choose_charts(load_charts(), current.cluster.version)
    for name in STACK:
        copy(current.charts / f"{name}-{choices[name].version}.tgz", folder)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return folder


def test_a_chart_with_a_wrong_digest_stops_all(current: Bench, chosen: Path) -> None:
    with chart_repository(chosen) as offered:
        offered.index(current.cluster.helm)
        (path,) = chosen.glob(f"{EXPORTER}-*.tgz")
        path.write_bytes(path.read_bytes() + b"more")
        data = {
            "cluster_chart_dir": None,
            "cluster_chart_repository": offered.url,
            "cluster_chart_plain_http": True,
        }
        done = current.deploy(**data)
    assert done.returncode == 1
    assert "GF812" in done.codes
    assert current.releases() == {}
    spaces = {found.metadata.name for found in current.core.list_namespace().items}
    assert "monitoring" not in spaces


@pytest.mark.claim(
    "A missing helm is downloaded; another checksum is refused.",
    level=5,
)
@pytest.mark.parametrize("cluster", KUBERNETES[:1], indirect=True)
def test_a_missing_helm_is_downloaded_and_used(
    place: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The real release is not available here, so the catalog's checksum is replaced."""
    site = tmp_path / "site"
    site.mkdir()
    with tarfile.open(site / HELM_ARCHIVE, "w:gz", compresslevel=1) as files:
        files.add(place.cluster.helm, DOWNLOAD.member.format(platform=SYSTEM))
    checksum = hashlib.sha256((site / HELM_ARCHIVE).read_bytes()).hexdigest()
    download = DOWNLOAD.model_copy(update={"sha256": {SYSTEM: checksum}})
    known = helm_catalog().model_copy(update={"download": download})
    monkeypatch.setattr(operations, "helm_catalog", lambda: known)
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    access = KubeAccess(str(place.cluster.kubeconfig))
    ours = [ReleaseRef(place.namespace, "one")]
    with chart_repository(site) as served:
        opened = operations.open_cluster("c", access, ours, helm_site=served.url, wait=None)
    program = opened.helm.program.path
    assert program.is_relative_to(tmp_path / "cache")
    assert program.stat().st_mode & 0o7777 == 0o755
    assert opened.carry_out(opened.plan(place.release()), print).ok
    again = operations.open_cluster("c", access, ours, helm_site=served.url, wait=None)
    assert again.helm.program == opened.helm.program
    assert again.plan(place.release()).action == "no-op"
    assert served.requested == [f"/{HELM_ARCHIVE}"]


def test_another_helm_than_the_catalogs_is_refused(
    current: Bench, chosen: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "sh").symlink_to("/bin/sh")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    (chosen / HELM_ARCHIVE).write_bytes(b"something else")
    with chart_repository(chosen) as served:
        done = current.deploy(cluster_helm=None, cluster_helm_url=served.url)
        assert done.returncode == 1
        assert "GF812" in done.codes
        (chosen / HELM_ARCHIVE).unlink()
        done = current.deploy(cluster_helm=None, cluster_helm_url=served.url)
        assert done.codes >= {"GF854"}
    assert served.requested == [f"/{HELM_ARCHIVE}"] * 2
    assert current.releases() == {}
