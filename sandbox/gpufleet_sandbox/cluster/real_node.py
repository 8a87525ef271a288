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
    """Make the host a node of the cluster, under its own name, and wait until it is Ready.

    The cluster listens where the host reaches it: `Cluster.up(address=host.gateway)`. Pods find
    the images that `node_images.bring` has given to the host. Once more changes nothing.
    SandboxError GF659 where no kubelet of the cluster's version has been tried, GF660 where the
    node does not become Ready.
    """
    tried = versions().kubernetes.real_nodes
    if minor_of(cluster.version) not in {minor_of(minor) for minor in tried}:
        known = ", ".join(tried)
        raise SandboxError(kinds.NO_REAL_NODE(kubernetes=cluster.version, known=known))
    progress(f"{host.name} becomes a node")
    _bring_programs(cluster, host, progress)
    _bring_files(cluster, host)
    node_images.bring(node_images.pause(), host)
    host.run("systemctl daemon-reload && systemctl restart containerd")
    host.run("systemctl enable kubelet && systemctl restart kubelet")
    if not wait_until(lambda: host.name in cluster.ready_nodes(), READY_SECONDS):
        raise _not_ready(cluster, host)


def _bring_programs(cluster: Cluster, host: Host, progress: Progress) -> None:
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


def _bring_files(cluster: Cluster, host: Host) -> None:
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
    """The error for a node that is not Ready, with what it says of itself or its kubelet's log."""
    core: Any = client.CoreV1Api(cluster.api)
    said = [
        condition.message
        for node in core.list_node(field_selector=f"metadata.name={host.name}").items
        for condition in node.status.conditions or ()
        if condition.type == "Ready"
    ]
    log = "journalctl -u kubelet --no-pager -o cat -n 200 | grep -E '^[EF]|error'"
    reason = "; ".join(said) or last_lines(host.run(log, check=False).stdout, 3)
    return SandboxError(
        kinds.NODE_NOT_READY(host=host.name, seconds=READY_SECONDS, reason=reason or "no log")
    )
