"""A sandbox host as a real node of a test cluster: real kubelet, real containerd."""

from __future__ import annotations

import json
from typing import Any

import yaml
from kubernetes import client

from gpufleet_sandbox.cluster import node_files, node_images
from gpufleet_sandbox.cluster.build import Progress, kubernetes_servers
from gpufleet_sandbox.cluster.certificates import Authority
from gpufleet_sandbox.cluster.cluster import Cluster
from gpufleet_sandbox.cluster.launch import READY_SECONDS
from gpufleet_sandbox.cluster.versions import minor_of, versions
from gpufleet_sandbox.debian import unpacked
from gpufleet_sandbox.errors import SandboxError, kinds
from gpufleet_sandbox.host import Host
from gpufleet_sandbox.paths import cache_dir
from gpufleet_sandbox.process import last_lines
from gpufleet_sandbox.waiting import wait_until


def join(cluster: Cluster, host: Host, progress: Progress = print) -> None:
    """Join the host to the cluster as a node, under its own name, and wait until it is Ready.

    The cluster must listen on an address that the host reaches: `Cluster.up(address=host.gateway)`.
    Pods use the images that `node_images.load_image` loaded on the host. Idempotent.
    SandboxError GF659 if the kubelet of the cluster's version has not been tested, GF660 if the
    node does not become Ready.
    """
    tested = versions().kubernetes.real_nodes
    if minor_of(cluster.version) not in {minor_of(minor) for minor in tested}:
        known = ", ".join(tested)
        raise SandboxError(kinds.NO_REAL_NODE(kubernetes=cluster.version, known=known))
    progress(f"joining {host.name} as a node")
    _install_programs(cluster, host, progress)
    _write_files(cluster, host)
    node_images.load_image(node_images.pause(), host)
    host.run("systemctl daemon-reload && systemctl restart containerd")
    host.run("systemctl enable kubelet && systemctl restart kubelet")
    if not wait_until(lambda: host.name in cluster.ready_nodes(), READY_SECONDS):
        raise _not_ready(cluster, host)


def _install_programs(cluster: Cluster, host: Host, progress: Progress) -> None:
    home = cache_dir() / "go"
    kubelet = kubernetes_servers(["kubelet"], cluster.version, home, progress)["kubelet"]
    plugins = unpacked("containernetworking-plugins", progress)
    programs = {node_files.KUBELET: kubelet}
    for name in node_files.CNI_PROGRAMS:
        place = f"{node_files.CNI_FOLDER}/{name}"
        programs[place] = plugins / place.removeprefix("/")
    host.run(f"mkdir -p {node_files.CNI_FOLDER}")
    host.run("ln -sf /usr/lib/sim/runc /usr/local/sbin/runc")  # first on systemd's PATH
    for place, program in programs.items():
        host.engine("cp", program, f"{host.state.container}:{place}")


def _write_files(cluster: Cluster, host: Host) -> None:
    certificate, key = Authority.of_cluster(cluster.folder).node(host.name)
    authority = (cluster.folder / "ca.crt").read_text()
    server = yaml.safe_load(cluster.kubeconfig.read_text())["clusters"][0]["cluster"]["server"]
    access = node_files.access(server, authority, certificate, key)
    host.put(node_files.ACCESS, access, 0o600)
    host.put(node_files.AUTHORITY, authority)
    host.put(node_files.CONFIGURATION, node_files.kubelet_configuration(cluster.version))
    host.put("/etc/cni/net.d/10-pods.conflist", json.dumps(node_files.NETWORK, indent=1))
    host.put("/etc/systemd/system/kubelet.service", node_files.unit(host.name, host.address))
    containerd = "/etc/containerd/config.toml"
    host.put(containerd, node_files.containerd_settings(host.get(containerd)))


def _not_ready(cluster: Cluster, host: Host) -> SandboxError:
    """The error for a node that is not Ready, with its conditions or its kubelet's log."""
    core: Any = client.CoreV1Api(cluster.api)
    messages = [
        condition.message
        for node in core.list_node(field_selector=f"metadata.name={host.name}").items
        for condition in node.status.conditions or ()
        if condition.type == "Ready"
    ]
    log = "journalctl -u kubelet --no-pager -o cat -n 200 | grep -E '^[EF]|error'"
    reason = "; ".join(messages) or last_lines(host.run(log, check=False).stdout, 3)
    return SandboxError(
        kinds.NODE_NOT_READY(host=host.name, seconds=READY_SECONDS, reason=reason or "no log")
    )
