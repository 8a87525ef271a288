"""A sandbox host that is a node of a cluster: containerd, kubelet and device plugin are real."""

from __future__ import annotations

import base64
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kubernetes import client

from gpufleet_sandbox import Host, Sandbox
from gpufleet_sandbox.cluster import Cluster, node_images
from gpufleet_sandbox.cluster.node_images import NodeImage
from gpufleet_sandbox.cluster.real_node import join
from gpufleet_sandbox.cluster.versions import versions
from gpufleet_sandbox.inventory import group_data, nodes
from tests import warm
from tests.cluster.fake_charts import write_charts
from tests.cluster.stacking import PYINFRA, ROOT
from tests.naming import RUN

HOST = "ubuntu2404"  # containerd, one H100
SECONDS = 900
PLUGIN = "nvidia-device-plugin"


@dataclass(frozen=True, slots=True)
class Site:
    """A sandbox host that is a node of a cluster, and the inventory of both."""

    host: Host
    cluster: Cluster
    inventory: Path

    @property
    def core(self) -> Any:
        return client.CoreV1Api(self.cluster.api)

    def deploy(self, name: str) -> subprocess.CompletedProcess[str]:
        words = [str(PYINFRA), "-y", str(self.inventory), f"deploys/{name}.py"]
        return warm.completed(words, ROOT, os.environ, 600)

    def gpus(self) -> str:
        """The node's allocatable GPUs."""
        return str(self.core.read_node(HOST).status.allocatable.get("nvidia.com/gpu"))

    def phase(self, pod: str) -> str:
        return str(self.core.read_namespaced_pod_status(pod, "default").status.phase)

    def pod_resources(self) -> bytes:
        """Pods and their devices, as the kubelet's gRPC API reports them to exporters.

        The response is protobuf, which has names and identifiers as plain text.
        https://github.com/kubernetes/kubelet/blob/master/pkg/apis/podresources/v1/api.proto
        """
        socket = "/var/lib/kubelet/pod-resources/kubelet.sock"
        call = f"curl -sS --http2-prior-knowledge --unix-socket {socket} -H 'te: trailers' "
        call += "-H 'content-type: application/grpc' --data-binary @- "
        call += "http://localhost/v1.PodResourcesLister/List"
        empty = r"printf '\0\0\0\0\0'"  # not compressed, no bytes
        return base64.b64decode(self.host.output(f"{empty} | {call} | base64 -w0"))

    def log(self, pod: str) -> str:
        """The log, read on the node: the API server has no access to kubelets."""
        return self.host.output(f"cat /var/log/pods/default_{pod}_*/{pod}/*.log")


@contextmanager
def joined_site(
    worker: str, folder: Path, images: tuple[NodeImage, ...] = (), **more: Any
) -> Iterator[Site]:
    """A bare host joined to a fresh cluster. `images`: further ones of the host; `more`: data of
    the cluster."""
    name = f"{RUN}-node-{worker}"
    sandbox = Sandbox(name, progress=print, images="imitation")
    sandbox.down()
    sandbox.up([HOST])
    host = sandbox.host(HOST)
    left = Cluster.find(name)
    if left:
        left.down()
    cluster = Cluster.up(name, "1.36", nodes=0, progress=print, address=host.gateway)
    write_charts(folder / "charts")
    found = Site(host, cluster, folder / "inventory.py")
    stack = {
        "cluster_kubeconfig": str(cluster.kubeconfig),
        "cluster_helm": str(cluster.helm),
        "cluster_chart_dir": str(folder / "charts"),
        "cluster_chart_versions": {PLUGIN: versions().programs[PLUGIN].version.removeprefix("v")},
        "device_plugin_label_nodes": True,
        "device_plugin_runtime_class": "nvidia",
        "device_plugin_gfd": False,
        "monitoring_enabled": False,
        **more,
    }
    node_data = {**group_data(), "node_reboot": "if_needed"}
    found.inventory.write_text(
        f"gpu_nodes = ({nodes(name)!r}, {node_data!r})\ngpu_cluster = (['@local'], {stack!r})\n"
    )
    join(cluster, host)
    for image in (node_images.probe(), node_images.device_plugin(print), *images):
        node_images.load_image(image, host)
        assert not host.engine("images", "--quiet", image.name).stdout, "it stays on this machine"
    yield found
    if os.environ.get("GPUFLEET_KEEP_SANDBOX") != "1":
        cluster.down()
        sandbox.down()
