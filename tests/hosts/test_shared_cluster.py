"""A cluster whose nodes share their GPUs in four ways; each way becomes each other one.

Plugin, GPU feature discovery, MPS control daemon and their chart are real, as are kubelets,
containerd and NFD. NVML and nvidia-cuda-mps-control are the sandbox's.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from checking import GPUFLEET
from cluster_site import PHASES, bare_hosts
from deploying import ROOT
from driver_state import loaded, mig_layouts
from killing import killed
from kubernetes.client.exceptions import ApiException
from upgrade_site import NEW, OLD, Nodes, clear
from urllib3.exceptions import HTTPError

from gpufleet_sandbox import Host
from gpufleet_sandbox.kubernetes.images import GPU_PROBE
from gpufleet_sandbox.waiting import wait_until
from tests.cluster.running_charts import write_running_charts
from tests.naming import RUN

pytestmark = [pytest.mark.hosts, pytest.mark.extended]

HOSTS = ("ubuntu2404", "debian12", "ubuntu2404-2", "debian12-2")  # the first controls
GPUS = ",".join(["h100:2"] * len(HOSTS))
WAYS = ("whole", "time-slicing", "mig", "mps")
KEYS: dict[str, dict[str, Any]] = {
    "whole": {"gpu_mig": "off", "gpu_sharing": "none"},
    "time-slicing": {"gpu_mig": "off", "gpu_sharing": "time-slicing", "gpu_replicas": 4},
    "mig": {"gpu_mig": {0: ["3g.40gb", "2g.20gb", "1g.10gb:2"], "all": "off"}},
    "mps": {"gpu_mig": "off", "gpu_sharing": "mps", "gpu_replicas": 2},
}
OFFERS = {
    "whole": {"nvidia.com/gpu": 2},
    "time-slicing": {"nvidia.com/gpu": 8},
    "mig": {
        "nvidia.com/gpu": 1, "nvidia.com/mig-3g.40gb": 1, "nvidia.com/mig-2g.20gb": 1,
        "nvidia.com/mig-1g.10gb": 2,
    },
    "mps": {"nvidia.com/gpu": 4},
}  # fmt: skip
SECONDS = 600
KILLS, SEED = 4, 20261130
LOOK = "env; ls /dev; ls /dev/nvidia-caps; exec sleep 100000"
INVENTORY = """\
import json

from gpufleet_sandbox.inventory import cluster_data, group_data, nodes, stack_data

_data = {{**group_data(), **cluster_data({box!r}), "kubernetes_control_plane_pods": True}}
_keys = json.loads({keys!r})
_nodes = [(name, {{**data, **_keys[name]}}) for name, data in nodes({box!r})]
gpu_nodes = (_nodes, {{**_data, **json.loads({data!r})}})
control_plane = [_nodes[0]]
gpu_cluster = (["@local"], {{**stack_data({box!r}, {charts!r}), **json.loads({stack!r})}})
"""
STACK = {
    "device_plugin_label_nodes": False, "device_plugin_gfd": True,
    "cluster_chart_versions": {"nvidia-device-plugin": "0.18.0"},  # newer ones lack MPS
}  # fmt: skip


@dataclass
class Shared(Nodes):
    """Nodes, and how each shares its GPUs."""

    ways: dict[str, str] = field(kw_only=True)

    def inventory(self) -> str:
        data = {"node_reboot": "if_needed", "upgrade_drain": "gpu", "upgrade_soak": 0}
        data |= {"upgrade_gpu_image": GPU_PROBE, "upgrade_wait": SECONDS, "driver_version": OLD}
        data |= {"upgrade_jobs": "evict", **self.data}
        keys = {name: KEYS[way] for name, way in self.ways.items()}
        file = self.folder / "inventory.py"
        file.write_text(
            INVENTORY.format(
                box=self.box.name, charts=str(self.charts), data=json.dumps(data),
                keys=json.dumps(keys), stack=json.dumps(STACK),
            )
        )  # fmt: skip
        return str(file)

    def offered(self, name: str) -> dict[str, int]:
        """What a node offers, without resources of which there are none."""
        found = self.core.read_node(name).status.allocatable
        numbers = {key: int(value) for key, value in found.items() if key.startswith("nvidia.com/")}
        return {key: number for key, number in numbers.items() if number}

    def is_wanted(self) -> bool:
        return all(self.offered(name) == OFFERS[way] for name, way in self.ways.items())

    def assert_shared(self) -> None:
        """Nodes offer what their keys say, and `verify` finds nothing."""
        assert wait_until(self.is_wanted, SECONDS), {name: self.offered(name) for name in HOSTS}
        done = self.gpufleet("verify", self.inventory())
        assert done.returncode == 0, done.stdout

    def steps(self) -> list[list[str]]:
        """The commands that make the nodes as their keys say."""
        file = self.inventory()
        return [
            ["apply", file, "--yes", "--limit", "gpu_cluster"],
            ["upgrade", "start", file, "--sharing", "--yes"],
            ["apply", file, "--yes"],
        ]

    def change(self) -> str:
        """Make the nodes as their keys say; what the commands printed."""
        shown = ""
        for words in self.steps():
            done = self.gpufleet(*words)
            shown += f"$ {' '.join(words)}\n{done.stdout}\nrc {done.returncode}\n"
        return shown


@pytest.fixture(scope="module")
def cluster(worker_id: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shared]:
    folder = tmp_path_factory.mktemp("shared")
    write_running_charts(folder / "charts")
    kinds = dict.fromkeys(HOSTS[:2], 2)
    with bare_hosts(f"{RUN}-shared-{worker_id}", kinds, gpus=GPUS) as box:
        ways = dict(zip(HOSTS, WAYS, strict=True))
        yield Shared([], folder, box=box, charts=folder / "charts", ways=ways)


@pytest.fixture(scope="module")
def created(cluster: Shared) -> dict[str, Any]:
    report = cluster.folder / "create.json"
    words = ("cluster", "create", cluster.inventory(), "--yes", "--json", str(report))
    done = cluster.gpufleet(*words)
    assert done.returncode == 0, done.stdout
    found: dict[str, Any] = json.loads(report.read_text())
    return found


def test_each_node_offers_what_its_keys_say(cluster: Shared, created: dict[str, Any]) -> None:
    assert {each["name"]: each["result"] for each in created["phases"]} == dict.fromkeys(
        PHASES, "passed"
    )
    cluster.assert_shared()


def pod_spec(node: str, resource: str) -> dict[str, Any]:
    """A pod of a node with one of its resources, which logs what it sees."""
    container = {
        "name": "look", "image": GPU_PROBE, "command": ["/bin/sh", "-c", LOOK],
        "resources": {"limits": {resource: "1"}},
    }  # fmt: skip
    return {
        "containers": [container], "runtimeClassName": "nvidia", "terminationGracePeriodSeconds": 1,
        "nodeSelector": {"kubernetes.io/hostname": node},
    }  # fmt: skip


def hold(cluster: Shared, node: str, resource: str, number: int = 0) -> str:
    """Create such a pod; its name."""
    name = f"{node}-{resource.rpartition('/')[2]}-{number}".replace(".", "-")
    spec = pod_spec(node, resource)
    cluster.core.create_namespaced_pod("default", {"metadata": {"name": name}, "spec": spec})
    return name


def seen(cluster: Shared, pod: str) -> str:
    """The log of a pod once it runs."""

    def text() -> str:
        found = cluster.core.read_namespaced_pod(pod, "default").status
        if found.phase != "Running":
            return ""
        return str(cluster.core.read_namespaced_pod_log(pod, "default"))

    assert wait_until(lambda: "urandom" in text(), SECONDS), text()
    return text()


def instances(host: Host) -> dict[int, str]:
    """Number of the capability of each GPU instance -> its profile."""
    listed = host.output("nvidia-smi mig -lgi; cat /proc/driver/nvidia-caps/mig-minors")
    row = r"\|\s+(\d+)\s+MIG (\S+)\s+\d+\s+(\d+)\s+\d+:\d+"
    profiles = {(gpu, instance): profile for gpu, profile, instance in re.findall(row, listed)}
    access = re.findall(r"^gpu(\d+)/gi(\d+)/access (\d+)", listed, re.M)
    return {
        int(number): profiles[gpu, instance]
        for gpu, instance, number in access
        if (gpu, instance) in profiles
    }


@pytest.mark.claim(
    "In one cluster with whole, time-sliced, MIG and MPS nodes, pods get what they ask for and no "
    "other device.",
    level=3,
)
def test_pods_get_what_they_ask_for_and_no_other_device(
    cluster: Shared, created: dict[str, Any]
) -> None:
    pods = {
        (node, resource): [hold(cluster, node, resource, each) for each in range(number)]
        for node, way in cluster.ways.items()
        for resource, number in OFFERS[way].items()
    }
    for (node, resource), names in pods.items():
        logs = [seen(cluster, name) for name in names]
        gpus = [re.findall(r"^nvidia\d+$", log, re.M) for log in logs]
        parts = [re.findall(r"^nvidia-cap(\d+)$", log, re.M) for log in logs]
        assert {len(found) for found in gpus} == {1}, logs  # one GPU, or the GPU of the instance
        assert {"CUDA_MPS_PIPE_DIRECTORY" in log for log in logs} == {cluster.ways[node] == "mps"}
        if profile := resource.partition("mig-")[2]:
            known = instances(cluster.host(node))
            found = [[known[int(cap)] for cap in caps if int(cap) in known] for caps in parts]
            assert found == [[profile]] * len(names), logs  # and its compute instance:
            assert len({tuple(caps) for caps in parts}) == len(names), logs
            assert {len(caps) for caps in parts} == {2}, logs
        else:
            assert parts == [[]] * len(names), logs
            assert len({gpu for found in gpus for gpu in found}) == min(2, len(names)), logs
    clear(cluster)


def turned(cluster: Shared, by: int) -> dict[str, str]:
    """The next way but `by` for each node."""
    return {node: WAYS[(WAYS.index(way) + by) % len(WAYS)] for node, way in cluster.ways.items()}


@pytest.mark.parametrize("by", [1, 2, 3])
@pytest.mark.claim(
    "Nodes change from each way of sharing GPUs to each other one, and are verified.", level=3
)
def test_each_way_becomes_each_other(cluster: Shared, created: dict[str, Any], by: int) -> None:
    cluster.ways = turned(cluster, by)
    print(cluster.change())
    cluster.assert_shared()


def serve(cluster: Shared, node: str, resource: str) -> None:
    """A Deployment with one of a node's resources, whose pod returns to the node."""
    labels = {"app": "hold"}
    spec = pod_spec(node, resource)
    body = {
        "metadata": {"name": "hold"},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": spec},
        },
    }
    cluster.apps.create_namespaced_deployment("default", body)
    assert wait_until(lambda: cluster.ready("hold") == 1, SECONDS)


def node_of(cluster: Shared, way: str) -> str:
    return next(node for node, each in cluster.ways.items() if each == way)


@pytest.mark.claim("Reboots keep what nodes offer, and the MIG devices of their pods.", level=3)
def test_a_reboot_keeps_what_nodes_offer(cluster: Shared, created: dict[str, Any]) -> None:
    node = node_of(cluster, "mig")
    before = cluster.host(node).output("nvidia-smi -L")
    serve(cluster, node, "nvidia.com/mig-3g.40gb")
    for name in (node, node_of(cluster, "mps")):
        cluster.host(name).reboot()

    def returned() -> bool:
        try:
            return cluster.ready("hold") == 1
        except (ApiException, HTTPError):  # the control plane starts
            return False

    assert wait_until(returned, SECONDS)
    assert cluster.host(node).output("nvidia-smi -L") == before
    cluster.assert_shared()
    clear(cluster)


@pytest.mark.claim(
    "A node with MIG devices in use gets another driver, and its pod gets such a device again.",
    level=3,
)
def test_a_driver_upgrade_keeps_instances_that_pods_hold(
    cluster: Shared, created: dict[str, Any]
) -> None:
    node = node_of(cluster, "mig")
    layout = mig_layouts(cluster.host(node))
    serve(cluster, node, "nvidia.com/mig-3g.40gb")
    done = cluster.run("start", "--to", NEW, "--limit", node, "--yes")
    assert done.returncode == 0, done.stdout
    host = cluster.host(node)
    assert (loaded(host), mig_layouts(host)) == (NEW, layout)
    assert wait_until(lambda: cluster.ready("hold") == 1, SECONDS)
    assert wait_until(cluster.is_wanted, SECONDS), cluster.offered(node)
    clear(cluster)
    back = cluster.run("rollback", "--limit", node, "--yes")
    assert back.returncode == 0, back.stdout
    assert (loaded(host), mig_layouts(host)) == (OLD, layout)
    cluster.assert_shared()


def test_killed_runs_end_where_they_were_going(cluster: Shared, created: dict[str, Any]) -> None:
    chance = random.Random(SEED)
    cluster.ways = turned(cluster, 2)
    for _ in range(KILLS):
        for words in cluster.steps():
            killed([str(GPUFLEET), *words], chance.uniform(1, 40), cluster.environment, ROOT)
    print(cluster.change())
    cluster.assert_shared()
