"""`gpufleet doctor` on a real node and its cluster that are broken: it names the cause of each."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import tomlkit
from kubernetes import client

from gpufleet_sandbox.cluster import node_images
from gpufleet_sandbox.cluster.node_files import CRI
from gpufleet_sandbox.waiting import wait_until
from tests.cluster.real_site import HOST, PLUGIN, SECONDS, Site, joined_site
from tests.cluster.stacking import PYINFRA, ROOT, Bench

pytestmark = [
    pytest.mark.extended,
    pytest.mark.claim(
        "`doctor` names the cause of a fault of a real node or of its cluster, and `--fix` "
        "restarts a pod of the device plugin that crashes.",
        level=6,
    ),
]

GPUFLEET = PYINFRA.with_name("gpufleet")
EXPORTER = "dcgm-exporter"
CONFIG = "/etc/containerd/config.toml"
CRASHES = {PLUGIN: ["nvidia-device-plugin", "--no-such-option"], EXPORTER: ["/bin/false"]}
STOPPED = {
    "type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown",
    "message": "Kubelet stopped posting node status.",
}  # fmt: skip
Causes = tuple[set[str], set[str]]  # of the host, and of the cluster
FINE: Causes = (set(), set())


@pytest.fixture(scope="module")
def site(worker_id: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A node with driver, toolkit and plugin, and an image that only waits as the exporter."""
    name = f"example.invalid/{EXPORTER}:4.8.2"  # as in its fake chart
    image = node_images.NodeImage(
        name, node_images.probe().fill, ("/bin/sh", "-c", "exec sleep 1000000")
    )
    monitoring = {"monitoring_enabled": True, "monitoring_prometheus": "none"}
    folder = tmp_path_factory.mktemp("site")
    with joined_site(worker_id, folder, (image,), **monitoring) as found:
        for deploy in ("gpu_node", "gpu_cluster"):
            done = found.deploy(deploy)
            assert done.returncode == 0, done.stdout + done.stderr
        assert wait_until(lambda: found.gpus() == "1", SECONDS)
        yield found


def run_doctor(inventory: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [GPUFLEET, "doctor", inventory, *words],
        cwd=ROOT, env=os.environ | {"COLUMNS": "200"}, stdin=subprocess.DEVNULL,
        capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip


def causes(inventory: Path) -> Causes:
    """The failed checks that follow from no other one, without the versions: those of the fake
    charts are known to be bad together."""
    found = json.loads(run_doctor(inventory, "--json", "--skip", "cluster.versions").stdout)
    names = [
        {each["check"] for part in found[kind].values() for each in part["causes"]}
        for kind in ("hosts", "clusters")
    ]
    return names[0], names[1]


def daemonset(site: Site, name: str) -> Any:
    apps: Any = client.AppsV1Api(site.cluster.api)
    sets = apps.list_daemon_set_for_all_namespaces(field_selector=f"metadata.name={name}").items
    return next(iter(sets))


def patch_daemonset(site: Site, name: str, command: list[str] | None, **spec: Any) -> None:
    """Change the command of a DaemonSet's container, and further fields of its spec."""
    there = daemonset(site, name)
    container = {"name": there.spec.template.spec.containers[0].name, "command": command}
    body = {"spec": {"template": {"spec": {"containers": [container]}}, **spec}}
    apps: Any = client.AppsV1Api(site.cluster.api)
    apps.patch_namespaced_daemon_set(name, there.metadata.namespace, body)


def pods_of(site: Site, name: str) -> list[Any]:
    selector = f"app.kubernetes.io/name={name}"
    return list(site.core.list_pod_for_all_namespaces(label_selector=selector).items)


def crashes(site: Site, name: str) -> bool:
    """Whether the kubelet waits before it starts a container of the DaemonSet again."""
    states = [
        each.state.waiting
        for pod in pods_of(site, name)
        for each in pod.status.container_statuses or ()
    ]
    return any(state and state.reason == "CrashLoopBackOff" for state in states)


def is_fine(site: Site) -> bool:
    """Whether the node is Ready and offers its GPU, and all pods of the DaemonSets are Ready."""
    sets = [daemonset(site, name).status for name in (PLUGIN, EXPORTER)]
    ready = all(each.number_ready == each.desired_number_scheduled == 1 for each in sets)
    return ready and site.gpus() == "1" and HOST in site.cluster.ready_nodes()


def test_a_node_that_works_passes(site: Site) -> None:
    assert wait_until(lambda: is_fine(site), SECONDS)
    assert causes(site.inventory) == FINE


def test_a_plugin_that_crashes_is_named_and_its_pod_restarted(site: Site) -> None:
    patch_daemonset(
        site, PLUGIN, CRASHES[PLUGIN], updateStrategy={"type": "OnDelete", "rollingUpdate": None}
    )
    (pod,) = pods_of(site, PLUGIN)
    site.core.delete_namespaced_pod(pod.metadata.name, pod.metadata.namespace)
    assert wait_until(lambda: crashes(site, PLUGIN), SECONDS)
    assert causes(site.inventory) == (set(), {"cluster.plugin"})
    patch_daemonset(site, PLUGIN, [PLUGIN])  # the pod has still the old command
    done = run_doctor(site.inventory, "--fix", "cluster.plugin", "--yes")
    assert "cluster.plugin was WARNING, is PASS" in done.stdout, done.stdout + done.stderr
    assert causes(site.inventory) == FINE
    patch_daemonset(site, PLUGIN, [PLUGIN], updateStrategy={"type": "RollingUpdate"})


@pytest.mark.parametrize("name", [PLUGIN, EXPORTER])
def test_a_missing_daemonset_is_named_and_a_run_repairs_it(site: Site, name: str) -> None:
    apps: Any = client.AppsV1Api(site.cluster.api)
    apps.delete_namespaced_daemon_set(name, daemonset(site, name).metadata.namespace)
    assert wait_until(lambda: not pods_of(site, name), SECONDS)
    assert causes(site.inventory) == (set(), {"cluster.releases"})
    done = site.deploy("gpu_cluster")
    assert done.returncode == 0, done.stdout + done.stderr
    assert wait_until(lambda: is_fine(site), SECONDS)
    assert causes(site.inventory) == FINE


def test_a_stopped_kubelet_is_named(site: Site) -> None:
    """The controller of the nodes writes the same, after minutes."""
    site.host.run("systemctl stop kubelet")
    site.core.patch_node_status(HOST, {"status": {"conditions": [STOPPED]}})
    assert causes(site.inventory) == ({"chain.kubelet"}, {"cluster.nodes"})
    site.host.run("systemctl start kubelet")
    assert wait_until(lambda: is_fine(site), SECONDS)


def test_a_stopped_containerd_is_named(site: Site) -> None:
    """The kubelet runs, and reports that its node is not Ready."""
    site.host.run("systemctl stop containerd")
    assert wait_until(lambda: HOST not in site.cluster.ready_nodes(), SECONDS)
    assert causes(site.inventory) == ({"chain.runtime"}, {"cluster.nodes"})
    site.host.run("systemctl start containerd")
    assert wait_until(lambda: is_fine(site), SECONDS)


def test_a_handler_that_the_runtime_does_not_have_is_named(site: Site) -> None:
    """RuntimeClass nvidia stays, and pods that run keep their GPUs."""
    text = site.host.get(CONFIG)
    lost: Any = tomlkit.parse(text)
    del lost["plugins"][CRI]["containerd"]["runtimes"]["nvidia"]
    put_config(site, tomlkit.dumps(lost))
    assert causes(site.inventory) == ({"chain.nvidia_runtime"}, set())
    put_config(site, text)
    assert causes(site.inventory) == FINE


def put_config(site: Site, text: str) -> None:
    """Write containerd's file and restart it, until the node works."""
    site.host.put(CONFIG, text)
    site.host.run("systemctl restart containerd")
    assert wait_until(lambda: is_fine(site), SECONDS)


# On simulated nodes: what containerd 1.6 and a plugin without events of NVML do not report.
STATUSES: Mapping[str, tuple[dict[str, Any], str]] = {
    "no handler nvidia": ({"runtimeHandlers": [{"name": "runc"}]}, "cluster.runtime_class"),
    "fewer GPUs": ({"allocatable": {"nvidia.com/gpu": "6"}}, "cluster.offered"),
}


@pytest.fixture
def judge(current: Bench, tmp_path: Path) -> Callable[[], Causes]:
    """The causes on the cluster, whose GPU stack is there."""
    data = {"monitoring_enabled": False, "device_plugin_runtime_class": "nvidia"}
    done = current.deploy(**data)
    assert done.returncode == 0, done.output
    inventory = tmp_path / "inventory.py"
    inventory.write_text(f"gpu_cluster = (['@local'], {current.data(**data)!r})\n")
    return lambda: causes(inventory)


@pytest.mark.parametrize("name", STATUSES)
def test_what_a_kubelet_reports_is_named(
    current: Bench, judge: Callable[[], Causes], name: str
) -> None:
    assert judge() == FINE
    status, check = STATUSES[name]
    node = current.core.list_node().items[0].metadata.name
    current.core.patch_node_status(node, {"status": status})
    assert judge() == (set(), {check})


def test_an_exporter_that_crashes_is_named(site: Site) -> None:
    patch_daemonset(site, EXPORTER, CRASHES[EXPORTER])
    assert wait_until(lambda: crashes(site, EXPORTER), SECONDS)
    assert causes(site.inventory) == (set(), {"cluster.exporter"})
    patch_daemonset(site, EXPORTER, None)
    assert wait_until(lambda: is_fine(site), SECONDS)
