"""The real DRA driver on a kubelet: a pod gets the GPU or the MIG device that it claims.

Kubelet, scheduler, containerd 2, the driver and its chart are real; NVML is the sandbox's.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from cluster_site import bare_hosts
from kubernetes import client
from upgrade_site import OLD, Nodes, clear

from gpufleet_sandbox.kubernetes.dra import build_dra, renew_containerd
from gpufleet_sandbox.kubernetes.images import GPU_PROBE
from gpufleet_sandbox.paths import cache_dir
from gpufleet_sandbox.waiting import wait_until
from tests.cluster.running_charts import write_running_charts
from tests.naming import RUN

pytestmark = [pytest.mark.hosts, pytest.mark.extended]

PLUGIN, CLAIMED = "ubuntu2404", "debian12"  # the first controls
LAYOUT = {0: ["3g.40gb", "2g.20gb"], "all": "off"}
SECONDS = 600
CLASSES = {"gpu": "gpu.nvidia.com", "mig": "mig.nvidia.com"}
GROUP = ("resource.k8s.io", "v1")
# a major number for MIG's capabilities, which the sandbox's kernel does not have
DEVICES = "/etc/sim/proc-devices"
VALUES = {
    "kubeletPlugin": {
        "containers": {
            "gpus": {"env": [{"name": "ALT_PROC_DEVICES_PATH", "value": f"/driver-root{DEVICES}"}]}
        }
    }
}
STACK = {
    "device_plugin_dra_values": VALUES,
    "cluster_chart_versions": {"nvidia-device-plugin": "0.18.0"},  # its image has all programs
}
INVENTORY = """\
import json

from gpufleet_sandbox.inventory import cluster_data, group_data, nodes, stack_data

_data = {{**group_data(), **cluster_data({box!r}), "kubernetes_control_plane_pods": True}}
_keys = json.loads({keys!r})
_nodes = [(name, {{**data, **_keys.get(name, {{}})}}) for name, data in nodes({box!r})]
gpu_nodes = (_nodes, {{**_data, "driver_version": {driver!r}, "node_reboot": "if_needed"}})
control_plane = [_nodes[0]]
gpu_cluster = (["@local"], {{**stack_data({box!r}, {charts!r}), **json.loads({stack!r})}})
"""


@dataclass
class Claims(Nodes):
    """Two nodes, and the keys of the second one."""

    keys: dict[str, Any] = field(kw_only=True)

    def inventory(self) -> str:
        file = self.folder / "inventory.py"
        file.write_text(
            INVENTORY.format(
                box=self.box.name, keys=json.dumps({CLAIMED: self.keys}), driver=OLD,
                charts=str(self.charts), stack=json.dumps(STACK),
            )
        )  # fmt: skip
        return str(file)

    def apply(self, *more: str) -> str:
        done = self.gpufleet("apply", self.inventory(), "--yes", *more)
        assert done.returncode == 0, done.stdout
        return done.stdout

    @property
    def objects(self) -> Any:
        return client.CustomObjectsApi(self.core.api_client)

    def devices(self) -> set[str]:
        """The types of the devices that the driver offers."""
        slices = self.objects.list_cluster_custom_object(*GROUP, "resourceslices")["items"]
        return {
            device["attributes"]["type"]["string"]
            for found in slices
            for device in found["spec"].get("devices") or ()
        }

    def claim(self, kind: str) -> str:
        """A pod with a claim of one device; what it sees once it runs."""
        exactly = {"deviceClassName": CLASSES[kind]}
        devices = {"requests": [{"name": "one", "exactly": exactly}]}
        body = {
            "apiVersion": "/".join(GROUP), "kind": "ResourceClaimTemplate",
            "metadata": {"name": kind}, "spec": {"spec": {"devices": devices}},
        }  # fmt: skip
        self.objects.create_namespaced_custom_object(
            *GROUP, "default", "resourceclaimtemplates", body
        )
        script = "ls /dev; ls /dev/nvidia-caps; exec sleep 100000"
        container = {
            "name": "look", "image": GPU_PROBE, "command": ["/bin/sh", "-c", script],
            "resources": {"claims": [{"name": "one"}]},
        }  # fmt: skip
        claims = [{"name": "one", "resourceClaimTemplateName": kind}]
        spec = {"containers": [container], "resourceClaims": claims}
        spec |= {"terminationGracePeriodSeconds": 1}
        self.core.create_namespaced_pod("default", {"metadata": {"name": kind}, "spec": spec})

        def text() -> str:
            found = self.core.read_namespaced_pod(kind, "default")
            if found.status.phase != "Running":
                return ""
            return str(self.core.read_namespaced_pod_log(kind, "default"))

        assert wait_until(lambda: "urandom" in text(), SECONDS), self.core.read_namespaced_pod(
            kind, "default"
        ).status
        return text()


@pytest.fixture(scope="module")
def cluster(worker_id: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Claims]:
    folder = tmp_path_factory.mktemp("dra")
    write_running_charts(folder / "charts")
    build_dra(cache_dir(), print)
    name = f"{RUN}-dra-{worker_id}"
    with bare_hosts(name, {PLUGIN: 1, CLAIMED: 1}, gpus="h100:2,h100:2") as box:
        found = Claims([], folder, box=box, charts=folder / "charts", keys={"gpu_mig": LAYOUT})
        done = found.gpufleet("cluster", "create", found.inventory(), "--yes")
        assert done.returncode == 0, done.stdout
        renew_containerd(box.host(CLAIMED), cache_dir(), print)
        major = "printf 'Character devices:\\n509 nvidia-caps\\n\\nBlock devices:\\n'"
        box.host(CLAIMED).run(f"{major} >{DEVICES}")
        yield found


@pytest.mark.claim(
    'On a node with gpu_sharing = "dra", a pod gets the GPU or the MIG device that it claims, and '
    "no other one; afterwards the device plugin offers them again.",
    level=3,
)
def test_pods_get_what_they_claim(cluster: Claims) -> None:
    assert wait_until(lambda: len(cluster.core.list_node().items) == 2, SECONDS)
    cluster.keys = {"gpu_mig": LAYOUT, "gpu_sharing": "dra"}
    cluster.apply()
    assert wait_until(lambda: cluster.devices() == {"gpu", "mig"}, SECONDS), cluster.devices()
    done = cluster.gpufleet("verify", cluster.inventory())
    assert done.returncode == 0, done.stdout
    for kind, parts in (("gpu", 0), ("mig", 2)):
        log = cluster.claim(kind)
        assert len(re.findall(r"^nvidia\d+$", log, re.M)) == 1, log
        assert len(re.findall(r"^nvidia-cap\d+$", log, re.M)) == parts, log
    clear(cluster)
    cluster.keys = {"gpu_mig": LAYOUT}
    cluster.apply()
    assert wait_until(lambda: not cluster.devices(), SECONDS)

    def offered() -> dict[str, str]:
        return dict(cluster.core.read_node(CLAIMED).status.allocatable)

    assert wait_until(lambda: offered()["nvidia.com/mig-3g.40gb"] == "1", SECONDS), offered()
