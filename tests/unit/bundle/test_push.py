"""Images and charts of a bundle go to a registry, each with its own result."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner, Result

from gpufleet.bundle.models import BundleFile, BundlePart
from gpufleet.bundle.operations import push
from gpufleet.bundle.operations.folder import finish_bundle, writing_bundle
from gpufleet.bundle.operations.store import store_file
from gpufleet.cli import main
from gpufleet.core.process import ProgramResult
from gpufleet.helm.findings.releases import HELM_MISSING
from gpufleet.kube.operations.access import ClusterProblem
from tests.unit.bundle.bundles import file_of

DIGEST = f"sha256:{'0' * 64}"


def entry(path: str, sort: Any, name: str, version: str) -> BundleFile:
    plain = file_of(path, path.encode())
    return BundleFile(path, plain.sha256, plain.size, "", sort, name, version)


FILES = (
    entry("v2/registry.k8s.io/pause/manifests/3.10", "image", "registry.k8s.io/pause:3.10", DIGEST),
    entry("v2/docker.io/library/x/manifests/1", "image", "x:1", DIGEST),
    entry("charts/dcgm-exporter-4.8.2.tgz", "chart", "dcgm-exporter", "4.8.2"),
)


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    with writing_bundle(tmp_path):
        for file in FILES:
            store_file(tmp_path, file, [file.path.encode()])
        finish_bundle(tmp_path, [BundlePart(FILES)])
    return tmp_path


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The commands of a push, which all succeed but that of the image x."""
    commands: list[list[str]] = []

    class Runs:
        def __init__(self, command: list[str], **how: Any) -> None:
            commands.append(command)

        def wait(self) -> ProgramResult:
            refused = any("docker.io" in word for word in commands[-1])
            return ProgramResult(1, "", "denied: no rights") if refused else ProgramResult(0, "")

    monkeypatch.setattr(push, "Process", Runs)
    monkeypatch.setattr(push, "find_helm", lambda *how: SimpleNamespace(path="/bin/helm"))
    return commands


def pushed(bundle: Path, *words: str) -> Result:
    return CliRunner().invoke(main, ["bundle", "push", str(bundle), *words])


def test_each_image_and_chart_is_pushed_and_a_failure_stops_no_other(
    bundle: Path, started: list[list[str]]
) -> None:
    done = pushed(bundle, "registry.example.com/mirror", "--plain-http")
    assert done.exit_code == 1
    assert "GF673" in done.output
    assert "no rights" in done.output
    (one,) = (words for words in started if "pause" in words[-1])
    assert one[-2].endswith(f"/registry.k8s.io/pause@{DIGEST}")
    assert one[-1] == "docker://registry.example.com/mirror/registry.k8s.io/pause:3.10"
    assert "--preserve-digests" in one
    (chart,) = (words for words in started if words[0] == "/bin/helm")
    assert chart[1:3] == ["push", str(bundle / FILES[2].path)]
    assert chart[-2:] == ["oci://registry.example.com/mirror/charts", "--plain-http"]


def test_the_keys_that_use_the_registry_are_printed(bundle: Path, started: list[list[str]]) -> None:
    output = pushed(bundle, "registry.example.com:5000/a").stdout
    keys = json.loads("{" + ",".join(line.rstrip(",") for line in output.splitlines()
                                     if line.startswith('"')) + "}")  # fmt: skip
    assert keys == {
        "cluster_chart_repository": "oci://registry.example.com:5000/a/charts",
        "kubernetes_registry_mirrors": {
            "registry.k8s.io": "https://registry.example.com:5000/v2/a/registry.k8s.io",
            "docker.io": "https://registry.example.com:5000/v2/a/docker.io",
        },
    }
    plain = pushed(bundle, "10.0.0.1", "--plain-http").stdout
    assert '"cluster_chart_plain_http": True,' in plain
    assert "http://10.0.0.1/v2/docker.io" in plain


def test_charts_without_a_helm_are_named_and_images_are_pushed(
    bundle: Path, started: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(*how: Any) -> Any:
        raise ClusterProblem(HELM_MISSING(reason="no way out", oldest="3.13"))

    monkeypatch.setattr(push, "find_helm", missing)
    done = pushed(bundle, "registry.example.com")
    assert done.exit_code == 1
    assert "no way out" in done.output
    assert len(started) == 2


def test_without_a_bundle_nothing_is_pushed(tmp_path: Path, started: list[list[str]]) -> None:
    assert pushed(tmp_path, "registry.example.com").exit_code == 1
    assert started == []
