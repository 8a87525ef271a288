"""A host without containerd and without a registry becomes a Kubernetes node, and again a host
without containerd: images come from an archive."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from archives import serve_containerd, write_images
from deploying import Outcome, run_deploy
from snapshots import differences, snapshot

from gpufleet.kubernetes.archives import read_archive
from gpufleet_sandbox import Host, Sandbox
from gpufleet_sandbox.inventory import cluster_data
from gpufleet_sandbox.kubernetes.cluster import prepare
from gpufleet_sandbox.paths import cache_dir
from tests.naming import RUN

pytestmark = [
    pytest.mark.hosts,
    pytest.mark.extended,
    pytest.mark.claim(
        "containerd is installed for a node; containers of others stop its removal.",
        level=3,
    ),
]

KIND = "ubuntu2404"
SECONDS = 600
CONFIG = "/etc/containerd/config.toml"
# files that a removal changes: docs/how-to/removal.md
LEFT = ("/boot/initr", "/etc/machine-id")
# also removes the configuration, which a new installation would use again
PURGE = "apt-get -qq -y purge containerd runc && rm -rf /etc/containerd"
NODES = "kubectl --kubeconfig /etc/kubernetes/admin.conf get nodes -o wide --no-headers"


@pytest.fixture(scope="module")
def host(worker_id: str) -> Iterator[Host]:
    """A host without containerd. Its distribution has a package of containerd."""
    box = Sandbox(f"{RUN}-containerd-{worker_id}", progress=print, images="imitation")
    box.down()
    prepare("1.36", print)
    box.up([KIND])
    found = box.host(KIND)
    serve_containerd(found)
    found.run(PURGE)
    assert found.run("command -v containerd", check=False).returncode
    yield found
    box.down()


@pytest.fixture(scope="module")
def before(host: Host) -> dict[str, list[str]]:
    return snapshot(host, *LEFT)


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All images that a cluster needs; `write_images` names them."""
    file = tmp_path_factory.mktemp("images") / "cluster.tar"
    write_images(cache_dir() / "mirror" / "kubernetes" / "v2", file)
    return file


@pytest.fixture(scope="module")
def installed(host: Host, archive: Path, before: Any) -> Outcome:
    return deploy(host, archive)


def deploy(host: Host, archive: Path, name: str = "gpu_node", **data: Any) -> Outcome:
    keys = {
        **cluster_data(host.sandbox),
        "node_reboot": "if_needed",
        "kubernetes_control_plane_pods": True,
        "kubernetes_registry_mirrors": {},
        "kubernetes_image_archives": [str(archive)],
        **data,
    }
    return run_deploy(name, [host], timeout=SECONDS, groups=("control_plane",), **keys)


def test_the_distributions_package_becomes_a_nodes(host: Host, installed: Outcome) -> None:
    assert not installed.failures(), installed.output
    version = host.output("dpkg-query -W -f '${Version}' containerd")
    node = host.output(NODES)
    assert " Ready " in node
    assert f"containerd://{version.split('~')[0]}" in node
    config = host.get(CONFIG)
    assert "nvidia-container-runtime" in config
    assert "restrict_oom_score_adj = true" in config  # of the package
    assert host.output("systemctl is-enabled containerd") == "enabled"


@pytest.mark.claim("A node is Ready with images from an archive only.", level=3)
def test_images_come_from_the_archive_alone(host: Host, archive: Path, installed: Outcome) -> None:
    there = host.output("ctr -n k8s.io images ls -q").splitlines()
    assert {name for name, _ in read_archive(str(archive)).images} <= set(there)
    assert "cluster.tar: 100 % sent" in installed.output
    assert host.output("ls -A /var/lib/gpufleet").count("images") == 0
    assert not host.output("ls /etc/containerd/certs.d 2>/dev/null; :")


def test_a_second_run_changes_nothing(host: Host, archive: Path, installed: Outcome) -> None:
    sessions = len(host.sessions())
    again = deploy(host, archive)
    assert again.report[host.name]["status"] == "converged", again.output
    assert len(host.sessions()) == sessions + 1


def test_images_that_are_there_are_not_sent_again(
    host: Host, archive: Path, installed: Outcome
) -> None:
    host.run(
        "sed -i '/^    \"archives\": \\[$/,/^    \\],\\?$/d' /var/lib/gpufleet/provenance.json"
    )
    again = deploy(host, archive)
    assert not again.failures(), again.output
    assert "% sent" not in again.output
    assert "archives" in host.get("/var/lib/gpufleet/provenance.json")


def test_containers_that_are_not_kubernetes_stop_the_removal(
    host: Host, archive: Path, installed: Outcome
) -> None:
    place = "/run/containerd/io.containerd.runtime.v2.task/mine/web"
    host.run(f"mkdir -p {place}")
    stopped = deploy(host, archive, "remove", toolkit_allow_disruption=True)
    host.run(f"rmdir {place} {place.rpartition('/')[0]}")
    assert "GF993" in stopped.codes(host.name), stopped.output
    assert host.run("command -v containerd", check=False).returncode == 0


def test_its_removal_leaves_the_host_as_it_was(
    host: Host, archive: Path, installed: Outcome, before: dict[str, list[str]]
) -> None:
    done = deploy(host, archive, "remove", toolkit_allow_disruption=True)
    assert not done.failures(), done.output
    changed = differences(before, snapshot(host, *LEFT))
    changed.pop("modules", None)  # nouveau returns with the next boot
    assert changed == {}
