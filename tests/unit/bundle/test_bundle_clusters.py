"""Charts and images of the plan of a cluster, or the reason why there is no plan."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner, Result

from gpufleet.bundle.operations import create
from gpufleet.bundle.operations.folder import read_bundle
from gpufleet.cli import deploy, main
from gpufleet.gpu_stack.operations import accesses
from gpufleet.helm.release import Release
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

    def render(release: Release, archive: Path) -> list[dict[str, Any]]:
        assert release.chart in archive.read_text()
        return [{"kind": "Pod", "spec": {"image": f"quay.io/x/{release.chart}:1"}},
                {"kind": "Pod", "spec": {"image": "quay.io/x/shared:1"}}]  # fmt: skip

    def opens(name: str, *how: Any, **more: Any) -> Any:
        assert more["wait"] is None, "the cluster was locked"
        if name == "old":
            raise ClusterProblem(SERVER_TOO_OLD(version="1.10", oldest="1.16"))
        busy = {"gpu-1": ("team/train",)}
        facts = replace(FACTS, apis=frozenset({"resource.k8s.io/v1"}), gpu_pods=busy)
        return SimpleNamespace(facts=facts, helm=None, added_apis=set(), render=render)

    def archive(release: Release, helm: Any, cache: Path) -> Path:
        path = tmp_path / f"{release.chart}.tgz"
        path.write_text(f"the chart {release.chart}")
        return path

    monkeypatch.setattr(accesses, "open_cluster", opens)
    monkeypatch.setattr(create, "chart_archive", archive)
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
        *(f"image quay.io/x/{file.name}:1" for file in charts),
    }
    assert "GF672 warning" in done.output


def test_keys_of_nodes_add_charts_also_while_pods_use_their_gpus(
    fleet: Callable[..., None], tmp_path: Path
) -> None:
    fleet()
    for keys, found in ({"gpu_sharing": "dra"}, True), ({"gpu_sharing": "none"}, False):
        parts, stops = create.collect_from_clusters([("lab", PLUGIN)], {"gpu-1": keys}, tmp_path)
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
