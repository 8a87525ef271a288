"""The sources of test clusters, and the flags of their programs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gpufleet.node.catalog import load_catalog
from gpufleet_sandbox import SandboxError
from gpufleet_sandbox.cluster import control_plane, nodes
from gpufleet_sandbox.cluster.control_plane import Layout
from gpufleet_sandbox.cluster.versions import minor_of, versions

KUBERNETES = versions().kubernetes


@pytest.mark.parametrize("wanted", ["1.18", "v1.18", "1.18.19", "v1.18.19"])
def test_a_minor_and_a_release_are_accepted(wanted: str) -> None:
    assert KUBERNETES.release(wanted) == "1.18.19"


def test_releases_belong_to_their_minors() -> None:
    for minor, release in KUBERNETES.releases.items():
        assert release.rpartition(".")[0] == minor
    minors = [minor_of(minor) for minor in KUBERNETES.releases]
    assert minors == sorted(minors)


def test_an_unknown_minor_is_rejected_with_the_known_ones() -> None:
    with pytest.raises(SandboxError, match=r"GF650.*'1\.17'.*1\.18, 1\.19"):
        KUBERNETES.release("1.17")


def test_an_older_kubeadm_gets_an_etcd_that_knows_its_flags() -> None:
    """kubeadm 1.32 starts etcd with flags --experimental-…, which etcd 3.7 does not have."""
    found = versions()
    assert found.etcd_tag("1.36.3") == "3.7.2-0"
    assert found.etcd_tag("1.32.13") == "3.6.8-0"
    assert "etcd-3.6" in found.programs_of(["1.32"])
    assert "etcd-3.6" not in found.programs_of(["1.36", "1.18"])
    assert {"coredns", "flanneld", "flannel"} < set(found.programs_of(["1.36"]))
    assert "containerd" not in found.programs_of(["1.36"]), "of DRA alone"


def test_kubeadm_clusters_are_of_minors_that_can_be_built() -> None:
    for minor, tags in KUBERNETES.kubeadm.items():
        assert minor in KUBERNETES.releases
        assert tags.pause == load_catalog().kubernetes.pause_image(minor).rpartition(":")[2]
        assert tags.etcd in versions().programs


def layout(version: str) -> Layout:
    return Layout(Path("/cluster"), version, "127.0.0.1", 1, 2, 3)


@pytest.mark.parametrize(
    ("version", "api_server", "others"),
    [("1.18.19", True, True), ("1.20.15", False, True), ("1.23.17", False, False)],
)
def test_ports_without_tls_are_closed_in_versions_that_have_them(
    version: str, api_server: bool, others: bool
) -> None:
    found = layout(version)
    assert ("--insecure-port=0" in control_plane.api_server(found)) is api_server
    assert ("--port=0" in control_plane.controller_manager(found)) is others
    assert ("--port=0" in control_plane.scheduler(found)) is others


def test_controller_manager_and_scheduler_listen_on_no_port() -> None:
    for program in (control_plane.controller_manager, control_plane.scheduler):
        assert "--secure-port=0" in program(layout("1.36.3"))


def test_a_late_lease_does_not_affect_pods() -> None:
    found = layout("1.18.19")
    assert "--node-lease-duration-seconds=400" in control_plane.kwok(found, Path("stages.yaml"))
    assert "--node-monitor-grace-period=600s" in control_plane.controller_manager(found)


def test_pins_for_old_releases_do_not_apply_to_new_ones() -> None:
    def pinned(version: str) -> set[str]:
        return {pin.module for pin in KUBERNETES.pins if pin.applies(version)}

    assert "github.com/modern-go/reflect2" in pinned("1.22.17")
    assert pinned("1.23.17") == {"vbom.ml/util"}


def test_the_repair_finds_the_line_of_the_old_validators() -> None:
    old = (
        "\tif data == nil || "
        "reflect.DeepEqual(reflect.Zero(reflect.TypeOf(data)), reflect.ValueOf(data)) {"
    )
    found = [one for one in KUBERNETES.repairs if one.file.endswith("type.go")]
    assert {one.module for one in found} == {
        "github.com/go-openapi/validate",
        "k8s.io/kube-openapi",
    }
    for one in found:
        assert re.sub(one.find, one.use, old) == "\tif data == nil {"


def test_the_call_of_another_patch_is_repaired_only_for_its_minor() -> None:
    [one] = [one for one in KUBERNETES.repairs if one.module == "k8s.io/controller-manager"]
    assert [minor for minor in KUBERNETES.releases if one.applies(minor)] == ["1.25"]
    line = "WithAuthentication(handler, authenticator, failedHandler, nil)"
    repaired = re.sub(one.find, one.use, line)
    assert repaired == "WithAuthentication(handler, authenticator, failedHandler, nil, nil)"
    assert re.sub(one.find, one.use, repaired) == repaired


def test_nodes_have_the_requested_gpus_and_labels() -> None:
    with_labels = nodes.node("gpu-1", gpus=8, version="1.36.3")
    assert with_labels["status"]["allocatable"]["nvidia.com/gpu"] == "8"
    assert with_labels["metadata"]["labels"]["kubernetes.io/os"] == "linux"
    assert with_labels["metadata"]["labels"]["nvidia.com/gpu.present"] == "true"
    without = nodes.node("gpu-1", gpus=8, version="1.36.3", labelled=False)
    assert not [
        label for label in without["metadata"]["labels"] if "nvidia" in label or "pci" in label
    ]
    bare = nodes.node("cpu-1", gpus=0, version="1.36.3")
    assert "nvidia.com/gpu" not in bare["status"]["capacity"]
