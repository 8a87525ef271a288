"""Programs of clusters that cannot be built: the reason is reported, no partial build stays."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpufleet_sandbox import SandboxError
from gpufleet_sandbox.cluster.build import kubernetes_servers, program
from gpufleet_sandbox.cluster.official import SITE
from gpufleet_sandbox.cluster.programs import SERVERS


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Simulate a missing connection: no official binaries, and go cannot download modules."""
    monkeypatch.setenv(SITE, "http://127.0.0.1:1")
    monkeypatch.setenv("GOPROXY", "off")


def test_a_release_that_cannot_be_downloaded(tmp_path: Path) -> None:
    said: list[str] = []
    with pytest.raises(SandboxError) as caught:
        kubernetes_servers(SERVERS, "1.36.3", tmp_path, said.append)
    finding = caught.value.finding
    assert finding.code == "GF654"
    assert finding.message.startswith("Kubernetes 1.36.3 could not be built: k8s.io/kubernetes")
    assert "GOPROXY=off" in finding.message
    assert "KUBEBUILDER_ASSETS" in finding.remedy
    assert any("building Kubernetes 1.36.3" in line for line in said)
    assert not (tmp_path / "kubernetes-1.36.3").exists()


def test_a_program_that_cannot_be_downloaded(tmp_path: Path) -> None:
    with pytest.raises(SandboxError, match=r"(?s)GF654.*kwok v.* could not be built.*GOPROXY=off"):
        program("kwok", tmp_path, print)
    assert not list(tmp_path.glob("kwok-*"))
