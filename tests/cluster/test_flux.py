"""The files of `gpufleet render --format flux`, installed by Flux's own programs."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from kubernetes import client

from gpufleet.helm.chart_choice import choose_charts, load_charts
from gpufleet.kube.operations.access import KubeAccess
from gpufleet.kube.operations.api import ClusterApi
from gpufleet_sandbox.debian import debian_program
from gpufleet_sandbox.waiting import wait_until
from tests.cluster.conftest import KUBERNETES
from tests.cluster.flux import HELM_RELEASES, flux, objects_of
from tests.cluster.pods import SECONDS
from tests.cluster.pool import Pool
from tests.cluster.serving import chart_repository, registry
from tests.cluster.stacking import STACK, Bench

PLAIN = {"cluster_chart_dir": "", "cluster_chart_plain_http": True}
FLUX_LABEL = "helm.toolkit.fluxcd.io/name"
HELM_GROUP = ("helm.toolkit.fluxcd.io", "v2")
DAEMONSETS = "/apis/apps/v1/daemonsets"

pytestmark = [
    pytest.mark.extended,
    pytest.mark.claim(
        "Of rendered files, Flux's helm-controller and source-controller make what apply makes; "
        "they take over its releases and apply changes.",
        level=5,
    ),
]


@pytest.fixture
def registry_program(current: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Debian's registry; afterwards the cache of charts is an empty one."""
    found = debian_program("docker-registry", "docker-registry")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return found


@pytest.fixture
def offered(
    current: Bench, registry_program: Path, charts: Path, tmp_path: Path
) -> Iterator[dict[str, Any]]:
    """Data of the inventory that name a repository of the charts."""
    folder = tmp_path / "charts"
    shutil.copytree(charts, folder)
    with chart_repository(folder) as repository:
        repository.index(current.cluster.helm)
        yield {**PLAIN, "cluster_chart_repository": repository.url}


@pytest.fixture
def pushed(
    current: Bench, registry_program: Path, charts: Path, tmp_path: Path
) -> Iterator[dict[str, Any]]:
    """Data of the inventory that name a registry of the charts."""
    chosen = choose_charts(load_charts(), current.cluster.version)
    with registry(registry_program, tmp_path) as found:
        for name in STACK:
            found.push(current.cluster.helm, charts / f"{name}-{chosen[name].version}.tgz")
        yield {**PLAIN, "cluster_chart_repository": found.url}


def test_flux_makes_what_apply_makes(
    current: Bench, pool: Pool, offered: dict[str, Any], tmp_path: Path
) -> None:
    assert current.deploy(**offered).returncode == 0
    with closing(ClusterApi(KubeAccess(str(current.cluster.kubeconfig)))) as api:
        wanted = objects_of(api)
    pool.bare(KUBERNETES[0])
    with flux(current, tmp_path, offered) as site:
        files = site.render()
        current.core.create_namespace({"metadata": {"name": "monitoring"}})
        login = {"admin-user": "admin", "admin-password": "of-the-test"}
        secret = {"metadata": {"name": "gpufleet-grafana"}, "stringData": login}
        current.core.create_namespaced_secret("monitoring", secret)
        (path,) = (each for each in files if each.endswith("/releases/dcgm-exporter.yaml"))
        unknown = {**files, path: files[path].replace("4.8.2", "9.9.9")}
        site.put_folder(unknown, "releases")
        assert wait_until(lambda: "version matching '9.9.9'" in str(site.states()), SECONDS)
        assert set(current.releases()) == {*STACK} - {"dcgm-exporter"}
        done = current.deploy("--dry", **offered)
        assert "GF827" in done.codes
        assert "dcgm-exporter: install" not in done.output

        site.apply(files)
        assert objects_of(site.api) == wanted
        assert site.render() == files
        done = current.deploy(**offered)
        assert (done.returncode, done.report["changed"]) == (0, 0), done.output
        assert "GF825" in done.codes, done.output
        assert objects_of(site.api) == wanted
        checks = current.verify(**offered)
        failed = {name for name, each in checks.items() if each["outcome"] == "failed"}
        assert failed == {"prometheus_answers"}, checks  # simulated nodes run no Prometheus
        assert "1 without a flag" in site.gpufleet("status")

        mixed = {"device_plugin_mig_strategy": "mixed"}
        files = site.render(**mixed)
        assert {"GF826", "GF827"} & site.planned(**mixed) == {"GF826"}
        assert "1 drift" in site.gpufleet("status", **mixed)
        site.apply(files)
        assert {"GF826", "GF827"} & site.planned(**mixed) == set()
        plugin = "/apis/apps/v1/namespaces/kube-system/daemonsets/nvidia-device-plugin"
        assert '"value": "mixed"' in json.dumps(site.api.get(plugin))
        site.put_folder({path: unknown[path]}, "releases")
        assert wait_until(lambda: "version matching '9.9.9'" in str(site.states()), SECONDS)
        assert {"GF826", "GF827"} & site.planned(**mixed) == {"GF827"}


def test_flux_takes_over_what_apply_made(
    current: Bench, pushed: dict[str, Any], tmp_path: Path
) -> None:
    def daemonsets(api: ClusterApi) -> set[str]:
        return {each["metadata"]["uid"] for each in api.list(DAEMONSETS)}

    assert current.deploy(**pushed).returncode == 0
    with flux(current, tmp_path, pushed) as site:
        wanted, before = objects_of(site.api), daemonsets(site.api)
        site.apply(site.render())
        assert objects_of(site.api) == wanted
        assert daemonsets(site.api) == before
        assert {"GF825", "GF826", "GF827"} & site.planned() == {"GF825"}
        done = current.deploy(deploy="remove", **pushed)
        assert (done.returncode, done.report["changed"]) == (0, 0), done.output
        assert "GF971" in done.codes
        assert objects_of(site.api) == wanted
        leave_flux(current, site.api)
        done = current.deploy("--dry", **pushed)
        assert "GF825" not in done.codes, done.output
        done = current.deploy(**pushed, cluster_adopt_releases=True)
        assert done.returncode == 0, done.output
        again = current.deploy(**pushed)
        assert (again.returncode, again.report["changed"]) == (0, 0), again.output
        assert daemonsets(site.api) == before


def leave_flux(current: Bench, api: ClusterApi) -> None:
    """What docs/how-to/gitops.md says about the way back: suspend, delete, remove the labels."""
    objects = client.CustomObjectsApi(current.cluster.api)
    apps: Any = client.AppsV1Api(current.cluster.api)
    for each in api.list(HELM_RELEASES):
        about = each["metadata"]
        words = (*HELM_GROUP, about["namespace"], "helmreleases", about["name"])
        objects.patch_namespaced_custom_object(*words, {"spec": {"suspend": True}})
        objects.delete_namespaced_custom_object(*words)
    assert wait_until(lambda: not api.list(HELM_RELEASES), SECONDS)
    for kind in ("daemon_set", "deployment", "stateful_set"):
        listed = getattr(apps, f"list_{kind}_for_all_namespaces")(label_selector=FLUX_LABEL)
        for each in listed.items:
            body = {"metadata": {"labels": {FLUX_LABEL: None}}}
            patch = getattr(apps, f"patch_namespaced_{kind}")
            patch(each.metadata.name, each.metadata.namespace, body)
