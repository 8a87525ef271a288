"""Charts and images of the plan of a cluster, or the reason why there is no plan."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner, Result

from gpufleet.bundle.models import BundlePart
from gpufleet.bundle.operations import create
from gpufleet.bundle.operations.folder import read_bundle
from gpufleet.cli import deploy, main
from gpufleet.gpu_stack.operations import accesses
from gpufleet.helm.release import Release
from gpufleet.kube.facts import ClusterFacts
from gpufleet.kube.findings import SERVER_TOO_OLD
from gpufleet.kube.operations.access import ClusterProblem
from gpufleet.verify.inventory import Target
from tests.unit.gpu_stack.gpu_clusters import FACTS

PLUGIN = {"monitoring_enabled": False}
Opened = Callable[..., Any]


@pytest.fixture
def fleet(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., None]:
    """`fleet(name={key: value})`: clusters of inv.py. `old` is too old; charts have two objects."""
    monkeypatch.setenv("PATH", str(tmp_path))  # without skopeo

    def render(*known: Any) -> list[dict[str, Any]]:
        release, archive = known[-2:]
        assert release.chart in archive.read_text()
        return [{"kind": "Pod", "spec": {"image": f"quay.io/x/{release.chart}:1"}},
                {"kind": "Pod", "spec": {"image": "quay.io/x/shared:1"}}]  # fmt: skip

    def opens(name: str, *how: Any, **more: Any) -> Any:
        assert more["wait"] is None, "the cluster was locked"
        if name == "old":
            raise ClusterProblem(SERVER_TOO_OLD(version="1.10", oldest="1.16"))
        busy = {"gpu-1": ("team/train",)}
        facts = replace(FACTS, apis=frozenset({"resource.k8s.io/v1"}), gpu_pods=busy)
        return SimpleNamespace(facts=facts, helm=None)

    def archive(release: Release, helm: Any, cache: Path) -> Path:
        path = tmp_path / f"{release.chart}.tgz"
        path.write_text(f"the chart {release.chart}")
        return path

    monkeypatch.setattr(accesses, "open_cluster", opens)
    monkeypatch.setattr(create, "chart_archive", archive)
    monkeypatch.setattr(create, "render_release", render)
    monkeypatch.setattr(create, "store_wheels", lambda folder: BundlePart())
    monkeypatch.setattr(create, "store_helm", lambda folder, site: BundlePart())
    monkeypatch.setattr(create, "helm_cache", lambda: tmp_path)
    monkeypatch.setattr(
        create, "read_chart", lambda *how: SimpleNamespace(all_crds=lambda values: [])
    )

    def loads(**data: dict[str, Any]) -> None:
        targets = [Target(name, ("gpu_cluster",), keys) for name, keys in data.items()]
        monkeypatch.setattr(deploy, "load_targets", lambda path: targets)

    return loads


def bundle(folder: Path) -> Result:
    return CliRunner().invoke(main, ["bundle", "create", "inv.py", "--output", str(folder)])


def test_charts_are_where_cluster_chart_dir_expects_them(
    fleet: Callable[..., None], tmp_path: Path
) -> None:
    fleet(lab=PLUGIN, twin=PLUGIN)
    done = bundle(tmp_path / "made")
    assert done.exit_code == 0, done.output
    made = read_bundle(tmp_path / "made")
    charts = [file for file in made.files if file.sort == "chart"]
    assert [file.path for file in charts] == [
        f"charts/{file.name}-{file.version}.tgz" for file in charts
    ]
    assert "nvidia-device-plugin" in {file.name for file in charts}
    assert {each.what for each in made.lacking} == {
        "image quay.io/x/shared:1",
        "image nvcr.io/nvidia/k8s/cuda-sample:vectoradd-cuda12.5.0",
        *(f"image quay.io/x/{file.name}:1" for file in charts),
    }
    assert "GF672 warning" in done.output


def test_keys_of_nodes_add_charts_also_while_pods_use_their_gpus(
    fleet: Callable[..., None], tmp_path: Path
) -> None:
    fleet()
    lab = Target("lab", ("gpu_cluster",), PLUGIN)
    for keys, found in ({"gpu_sharing": "dra"}, True), ({"gpu_sharing": "none"}, False):
        node = Target("gpu-1", ("gpu_nodes",), keys)
        parts, stops = create.collect_from_clusters([lab, node], [lab], tmp_path)
        names = {file.name for part in parts for file in part.files}
        assert ("dra-driver-nvidia-gpu" in names, stops) == (found, {})


@pytest.mark.parametrize(
    ("data", "code"),
    [({"old": {}}, "GF8"), ({"lab": {"cluster_chart_version": {}}}, "GF2")],
)
def test_a_cluster_without_a_plan_leaves_no_manifest(
    fleet: Callable[..., None], tmp_path: Path, data: dict[str, Any], code: str
) -> None:
    fleet(twin=PLUGIN, **data)
    done = bundle(tmp_path / "made")
    assert done.exit_code == 1
    assert code in done.output
    assert next(iter(data)) in done.output
    assert not (tmp_path / "made/manifest.json").exists()


NODES = ("gpu_nodes", "control_plane")
DRA = {"gpu_sharing": "dra"}


@pytest.mark.claim(
    "`bundle create` plans the GPU stack of a cluster that `cluster create` has not made yet.",
    level=1,
)
@pytest.mark.parametrize(
    ("version", "found", "charts"),
    [
        ({}, "v1.36.0", {"nvidia-device-plugin"}),
        ({"kubernetes_version": "1.34.2"}, "v1.34.2", {"nvidia-device-plugin"}),
        (DRA, "v1.36.0", {"nvidia-device-plugin", "dra-driver-nvidia-gpu"}),
    ],
)
def test_a_cluster_that_does_not_exist_yet_is_planned(
    fleet: Callable[..., None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    version: dict[str, str], found: str, charts: set[str],
) -> None:  # fmt: skip
    fleet()
    path = str(tmp_path / "kubeconfig")
    monkeypatch.setattr(create, "find_helm", lambda *how: None)
    rendered: list[ClusterFacts] = []

    def render(helm: Any, facts: ClusterFacts, *more: Any) -> list[dict[str, Any]]:
        rendered.append(facts)
        return []

    monkeypatch.setattr(create, "render_release", render)
    node = Target("gpu-1", NODES, {"kubernetes_kubeconfig": path, **version})
    lab = Target("lab", ("gpu_cluster",), {**PLUGIN, "cluster_kubeconfig": path})
    parts, stops = create.collect_from_clusters([node, lab], [node, lab], tmp_path)
    assert stops == {}
    assert charts <= {file.name for part in parts for file in part.files}
    assert {facts.server.full for facts in rendered} == {found}
    assert [each.name for each in rendered[0].nodes] == ["gpu-1"]
    (tmp_path / "kubeconfig").touch()  # it exists: its API is asked, here that of `opens`
    rendered.clear()
    create.collect_from_clusters([node, lab], [lab], tmp_path)
    assert {facts.server.full for facts in rendered} == {FACTS.server.full}


def test_a_wrong_version_stops_a_cluster_that_does_not_exist_yet(
    fleet: Callable[..., None], tmp_path: Path
) -> None:
    fleet()
    keys = {"kubernetes_kubeconfig": str(tmp_path / "x"), "kubernetes_version": "new"}
    node = Target("gpu-1", NODES, keys)
    lab = Target("lab", ("gpu_cluster",), {**PLUGIN, "cluster_kubeconfig": str(tmp_path / "x")})
    _, stops = create.collect_from_clusters([node, lab], [lab], tmp_path)
    assert ["kubernetes_version" in found.message for found in stops] == [True]
