"""Calls of helm use only the cluster of the opened context."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from gpufleet.helm.operations.calls import Helm
from gpufleet.helm.operations.program import HelmProgram
from gpufleet.helm.release import (
    ChartSource,
    HelmStrategy,
    HelmVersion,
    Release,
)
from gpufleet.kube.helm_releases import ADOPTED_LABEL
from gpufleet.kube.kubeconfig import Kubeconfig, read_kubeconfig
from gpufleet.kube.private_folder import private_folder

RELEASE = Release("one", "space", "tiny", "1.0.0", ChartSource("archive", "/tiny.tgz"))
SPY = """#!/bin/sh
env | grep -E '^(HELM_|KUBE)' > {folder}/environment
echo "$@" > {folder}/words
[ "$KUBECONFIG" = /dev/null ] && exit 0
stat -c %a "$KUBECONFIG" "$(dirname "$KUBECONFIG")" > {folder}/modes
cp "$KUBECONFIG" {folder}/kubeconfig
exit {code}
"""


def config(name: str) -> dict[str, Any]:
    return {
        "current-context": name,
        "clusters": [{"name": name, "cluster": {"server": f"https://{name}.example"}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "users": [{"name": name, "user": {"token": f"of-{name}", "as": "ada"}}],
    }


@pytest.fixture
def opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Kubeconfig:
    """The context b of two files, in an environment that would select another cluster."""
    for name in "ab":
        (tmp_path / name).write_text(json.dumps(config(name)))
    monkeypatch.setenv("KUBECONFIG", f"{tmp_path}/a:{tmp_path}/b")
    for name in ("APISERVER", "CONTEXT", "TOKEN", "ASUSER", "INSECURE_SKIP_TLS_VERIFY", "CAFILE"):
        monkeypatch.setenv(f"HELM_KUBE{name}", "elsewhere")
    monkeypatch.setenv("HELM_BURST_LIMIT", "200")
    return read_kubeconfig(f"{tmp_path}/a:{tmp_path}/b", "b")


def helm(folder: Path, opened: Kubeconfig, code: int = 0, *, major: int = 3) -> Helm:
    path = folder / "helm"
    path.write_text(SPY.format(folder=folder, code=code))
    path.chmod(0o755)
    return Helm(HelmProgram(path, HelmVersion(major, 2)), opened, "me")


@pytest.mark.parametrize("what", ["upgrade", "rollback", "uninstall"])
@pytest.mark.parametrize("code", [0, 1])
def test_helm_uses_only_the_opened_context(
    what: str, code: int, tmp_path: Path, opened: Kubeconfig
) -> None:
    called = helm(tmp_path, opened, code)
    strategy = HelmStrategy(environment={"HELM_EXPERIMENT": "1"})
    if what == "upgrade":
        archive = tmp_path / "tiny.tgz"
        result = called.upgrade(RELEASE, archive, strategy, 10)
    elif what == "uninstall":
        result = called.uninstall(RELEASE.ref, strategy, 10)
    else:
        result = called.rollback(RELEASE, 1, strategy, 10)
    assert result.code == code
    environment = (tmp_path / "environment").read_text()
    assert "HELM_KUBE" not in environment
    assert "HELM_BURST_LIMIT=200" in environment
    assert "HELM_EXPERIMENT=1" in environment
    assert (tmp_path / "modes").read_text().split() == ["600", "700"]
    assert yaml.safe_load((tmp_path / "kubeconfig").read_text()) == opened.content
    assert "of-a" not in (tmp_path / "kubeconfig").read_text()
    assert "of-b" not in (tmp_path / "words").read_text() + environment
    assert not list(private_folder().glob("kubeconfig-*")), "it outlives helm"


def test_helm_that_needs_no_cluster_knows_none(tmp_path: Path, opened: Kubeconfig) -> None:
    called = helm(tmp_path, opened)
    assert called.render(RELEASE, tmp_path / "tiny.tgz", "v1.36.3", ["v1"]).ok
    environment = (tmp_path / "environment").read_text()
    assert "KUBECONFIG=/dev/null" in environment
    assert "HELM_KUBE" not in environment


@pytest.mark.parametrize("adopted", [False, True])
def test_a_release_that_was_there_before_is_labelled(
    adopted: bool, tmp_path: Path, opened: Kubeconfig
) -> None:
    called = helm(tmp_path, opened)
    archive = tmp_path / "tiny.tgz"
    called.upgrade(RELEASE, archive, HelmStrategy(), 10, adopted=adopted)
    words = (tmp_path / "words").read_text()
    assert "--labels gpufleet=me,gpufleet-values=" in words
    assert (f",{ADOPTED_LABEL}=true" in words) is adopted


@pytest.mark.parametrize(("major", "wait"), [(3, "--wait"), (4, "--wait=legacy")])
@pytest.mark.parametrize("debug", [False, True])
def test_an_uninstall_waits_until_the_objects_are_gone(
    debug: bool, major: int, wait: str, tmp_path: Path, opened: Kubeconfig
) -> None:
    called = helm(tmp_path, opened, major=major)
    called.uninstall(RELEASE.ref, HelmStrategy(), 10, debug=debug)
    words = (tmp_path / "words").read_text().split()
    assert words[:4] == ["uninstall", "one", "--namespace", "space"]
    assert words[4:9] == ["--cascade", "foreground", wait, "--timeout", "10s"]
    assert ("--debug" in words) is debug
