"""Runs on a cluster in memory: each step in order, with its writes."""

from __future__ import annotations

import pyinfra
from cluster_bench import ClusterBench, install, take_away
from memory_cluster import CRDS, NAMESPACES

from gpufleet.gpu_stack.operations.stack import current_stack
from gpufleet.roles.cluster import apply_roles
from gpufleet.run.reporting import RunReport
from tests.roles.steps_of_clusters_setup import RICH, WRITES

INSTALLED = """\
Monitoring | Create Grafana's password
  create namespaces/monitoring
  create namespaces/monitoring/secrets/gpufleet-grafana
Monitoring | Configure Alertmanager's receivers
  apply namespaces/monitoring/secrets/gpufleet-alertmanager
Monitoring | Install Prometheus and Grafana
  helm upgrade monitoring/kube-prometheus-stack kube-prometheus-stack
Monitoring | Apply the alert rules
  apply monitoring.coreos.com/v1/namespaces/monitoring/prometheusrules/gpufleet-gpu
Monitoring | Apply the dashboards
  apply namespaces/monitoring/configmaps/gpufleet-dashboard-capacity
  apply namespaces/monitoring/configmaps/gpufleet-dashboard-fleet
  apply namespaces/monitoring/configmaps/gpufleet-dashboard-gpu
  apply namespaces/monitoring/configmaps/gpufleet-dashboard-node
  apply namespaces/monitoring/configmaps/gpufleet-dashboard-workload
Device plugin | Label the GPU nodes
  merge nodes/gpu-1 nvidia.com/gpu.present=true gpufleet-labelled=nvidia.com/gpu.present
  merge nodes/gpu-2 nvidia.com/gpu.present=true gpufleet-labelled=nvidia.com/gpu.present
Device plugin | Create the RuntimeClass
  create node.k8s.io/v1/runtimeclasses/nvidia
Device plugin | Install the device plugin
  helm upgrade kube-system/nvidia-device-plugin nvidia-device-plugin
Monitoring | Apply the list of counters
  apply namespaces/monitoring/configmaps/gpufleet-exporter-counters-sha256-…
Monitoring | Apply the exporter's monitor
  - objects are up to date
Monitoring | Install dcgm-exporter
  helm upgrade monitoring/dcgm-exporter dcgm-exporter
Monitoring | Remove the exporter's monitor
  - objects are up to date
Monitoring | Install prometheus-adapter
  helm upgrade monitoring/prometheus-adapter prometheus-adapter
Monitoring | Install node-problem-detector
  helm upgrade monitoring/node-problem-detector node-problem-detector
"""
NEEDLESS = """\
  - Grafana's password exists
  - Alertmanager's configuration is up to date
  - kube-prometheus-stack: revision 1 is up to date
  - objects are up to date
  - objects are up to date
  - every GPU node has the label
  - RuntimeClass nvidia exists
  - nvidia-device-plugin: revision 1 is up to date
  - objects are up to date
  - objects are up to date
  - dcgm-exporter: revision 1 is up to date
  - objects are up to date
  - prometheus-adapter: revision 1 is up to date
  - node-problem-detector: revision 1 is up to date
"""
REMOVED = """\
Removal | Uninstall the GPU Operator
  - gpufleet has no release gpu-operator here
Removal | Uninstall node-problem-detector
  helm uninstall monitoring/node-problem-detector
Removal | Uninstall prometheus-adapter
  helm uninstall monitoring/prometheus-adapter
Removal | Uninstall dcgm-exporter
  helm uninstall monitoring/dcgm-exporter
Removal | Uninstall the DRA driver
  - gpufleet has no release dra-driver-nvidia-gpu here
Removal | Uninstall the device plugin
  helm uninstall kube-system/nvidia-device-plugin
Removal | Uninstall node-feature-discovery
  - gpufleet has no release node-feature-discovery here
Removal | Uninstall Prometheus and Grafana
  helm uninstall monitoring/kube-prometheus-stack
Removal | Delete the objects of gpufleet
  delete namespaces/monitoring/configmaps/gpufleet-dashboard-capacity
  delete namespaces/monitoring/configmaps/gpufleet-dashboard-fleet
  delete namespaces/monitoring/configmaps/gpufleet-dashboard-gpu
  delete namespaces/monitoring/configmaps/gpufleet-dashboard-node
  delete namespaces/monitoring/configmaps/gpufleet-dashboard-workload
  delete namespaces/monitoring/configmaps/gpufleet-exporter-counters-sha256-…
  delete monitoring.coreos.com/v1/namespaces/monitoring/prometheusrules/gpufleet-gpu
  delete namespaces/monitoring/secrets/gpufleet-grafana
  delete namespaces/monitoring/secrets/gpufleet-alertmanager
Removal | Remove the label of the GPU nodes
  merge nodes/gpu-1 nvidia.com/gpu.present=None gpufleet-labelled=None
  merge nodes/gpu-2 nvidia.com/gpu.present=None gpufleet-labelled=None
"""
STAYS = """\
kubectl delete service kube-prometheus-stack-kubelet -n kube-system; \
kubectl delete runtimeclass nvidia; \
kubectl delete crd prometheusrules.monitoring.coreos.com servicemonitors.monitoring.coreos.com; \
kubectl delete namespace monitoring"""
LEFT = (
    f"{NAMESPACES}/monitoring",
    f"{NAMESPACES}/kube-system/services/kube-prometheus-stack-kubelet",
    "/apis/node.k8s.io/v1/runtimeclasses/nvidia",
    f"{CRDS}/prometheusrules.monitoring.coreos.com",
    f"{CRDS}/servicemonitors.monitoring.coreos.com",
)


def test_a_cluster_gets_every_role_once(bench: ClusterBench) -> None:
    steps, part = bench.run(install, **RICH)
    assert steps == INSTALLED.splitlines()
    assert (part.status, part.changed, part.examined) == ("changed", 12, True)
    assert part.findings == []
    assert 0 <= part.seconds < 60
    assert part.seen == {name: moved["after"] for name, moved in part.releases.items()}
    again, part = bench.run(install, **RICH)
    assert [line for line in again if line.startswith("  ")] == NEEDLESS.splitlines()
    assert (part.status, part.changed, part.seen) == ("converged", 0, {})


def test_a_removal_takes_every_role_away(bench: ClusterBench) -> None:
    before = {*bench.api.objects}
    bench.run(install, **RICH)
    steps, part = bench.run(take_away, **RICH)
    assert steps == REMOVED.splitlines()
    assert {*bench.api.objects} == before | {*LEFT}
    assert bench.lease.deletes
    (found,) = part.findings
    assert found.code == "GF973"
    assert found.remedy == f"Delete what nothing needs: {STAYS}"
    assert part.leaves
    assert 0 <= part.seconds < 60
    assert part.seen == dict.fromkeys(part.releases)
    again, part = bench.run(take_away, **RICH)
    assert not any(line.startswith(WRITES) for line in again)
    assert part.status == "converged"


def test_a_preview_changes_nothing_and_takes_no_lock(bench: ClusterBench) -> None:
    def preview() -> None:
        RunReport.of(pyinfra.state).plan_only = True
        stack = current_stack(preview=True)
        assert stack
        apply_roles(stack)

    before = {**bench.api.objects}
    steps, part = bench.run(preview)
    assert (steps, bench.said, bench.api.objects) == ([], [], before)
    assert [step.partition(" (")[0] for step in part.steps] == [
        "Create Grafana's password",
        "kube-prometheus-stack: install",
        "Apply the alert rules",
        "Apply the dashboards",
        "node-feature-discovery: install",
        "nvidia-device-plugin: install",
        "dcgm-exporter: install",
    ]
    assert (part.status, part.changed, part.seen) == ("planned", 7, {})


def test_an_operator_takes_the_place_of_plugin_and_exporter(bench: ClusterBench) -> None:
    steps, _ = bench.run(install, cluster_stack="gpu-operator")
    assert [line for line in steps if line.startswith("  helm")] == [
        "  helm upgrade monitoring/kube-prometheus-stack kube-prometheus-stack",
        "  helm upgrade gpu-operator/gpu-operator gpu-operator",
    ]
    steps, _ = bench.run(take_away, cluster_stack="gpu-operator")
    assert [line for line in steps if line.startswith("  helm")] == [
        "  helm uninstall gpu-operator/gpu-operator",
        "  helm uninstall monitoring/kube-prometheus-stack",
    ]


def test_a_blocker_stops_a_cluster_before_its_first_step(bench: ClusterBench) -> None:
    bench.run(install)
    assert [line for line in bench.said if not line.startswith("[@fake/cluster]   ")] == [
        "[@fake/cluster] waits up to 600 s for the lock",
        "[@fake/cluster] install: release monitoring/kube-prometheus-stack does not exist",
        "[@fake/cluster] install: release node-feature-discovery/node-feature-discovery does not "
        "exist",
        "[@fake/cluster] install: release kube-system/nvidia-device-plugin does not exist",
        "[@fake/cluster] install: release monitoring/dcgm-exporter does not exist",
    ]
    bench.api.pod("train-0", gpus=1)
    before = {*bench.api.objects}
    for deploy, code in ((install, "GF884"), (take_away, "GF970")):
        steps, part = bench.run(deploy, cluster_stack="gpu-operator")
        assert (steps, part.status, part.steps) == ([], "failed", [])
        assert {found.code for found in part.findings} == {code}
        assert {*bench.api.objects} == before


SLICED = {"gpu_sharing": "time-slicing", "gpu_replicas": 4}
HALVES = {"gpu_sharing": "time-slicing", "gpu_replicas": 2}
CONFIG = "nvidia.com/device-plugin.config"


def shared(bench: ClusterBench, **nodes: dict[str, object]) -> list[str]:
    """The writes of a run with these keys of gpu-1 and gpu-2 that concern sharing."""
    bench.nodes = {name.replace("_", "-"): keys for name, keys in nodes.items()}
    steps, part = bench.run(install, monitoring_enabled=False, device_plugin_enabled=True)
    assert part.status in ("changed", "converged"), part.findings
    return [line for line in steps if line.startswith(WRITES) and "discovery" not in line]


def test_labels_of_configurations_come_after_the_plugin_has_them(bench: ClusterBench) -> None:
    plugin = "  helm upgrade kube-system/nvidia-device-plugin nvidia-device-plugin"
    assert shared(bench, gpu_1=SLICED, gpu_2=SLICED) == [
        plugin,
        f"  apply nodes/gpu-1 {CONFIG}=time-slicing-4",
        f"  apply nodes/gpu-2 {CONFIG}=time-slicing-4",
    ]
    assert shared(bench, gpu_1=SLICED, gpu_2=SLICED) == []
    assert shared(bench, gpu_1=SLICED, gpu_2=HALVES) == [
        plugin,
        f"  apply nodes/gpu-2 {CONFIG}=time-slicing-2",
    ]
    # without the configuration that its label names, the plugin would not start
    assert shared(bench, gpu_1=HALVES) == [
        "  apply nodes/gpu-1",
        plugin,
        f"  apply nodes/gpu-1 {CONFIG}=time-slicing-2",
        "  apply nodes/gpu-2",
    ]
    bench.nodes = {}
    steps, _ = bench.run(take_away, monitoring_enabled=False)
    assert f"  merge nodes/gpu-1 {CONFIG}=None gpufleet-labelled=None" in steps


def test_a_pod_that_got_a_gpu_since_the_plan_keeps_the_sharing(bench: ClusterBench) -> None:
    bench.nodes = {"gpu-1": HALVES}

    def late() -> None:
        install()
        bench.api.pod("train-0", gpus=1)

    _, part = bench.run(late, monitoring_enabled=False)
    assert (part.status, {found.code for found in part.findings}) == ("failed", {"GF976"})
    assert CONFIG not in bench.api.get("/api/v1/nodes/gpu-1")["metadata"].get("labels", {})
    _, part = bench.run(install, monitoring_enabled=False, cluster_allow_disruption=True)
    assert part.status == "changed"


DRA, DRIVER = "gpufleet/dra-driver", "dra-driver-nvidia-gpu"


def test_the_plugin_leaves_a_node_before_the_dra_driver_starts_there(bench: ClusterBench) -> None:
    bench.api.define("deviceclasses", "DeviceClass", "resource.k8s.io")
    assert shared(bench, gpu_1={"gpu_sharing": "dra"}) == [
        "  helm upgrade kube-system/nvidia-device-plugin nvidia-device-plugin",
        f"  apply nodes/gpu-1 {DRA}=true",
        f"  create namespaces/{DRIVER}",
        f"  helm upgrade {DRIVER}/{DRIVER} {DRIVER}",
    ]
    assert shared(bench, gpu_1={"gpu_sharing": "dra"}) == []
    assert shared(bench, gpu_2={"gpu_sharing": "dra"}) == [
        "  apply nodes/gpu-1",
        f"  apply nodes/gpu-2 {DRA}=true",
    ]
    bench.nodes = {}
    steps, _ = bench.run(take_away, monitoring_enabled=False)
    assert f"  merge nodes/gpu-2 {DRA}=None gpufleet-labelled=None" in steps
    gone = [line for line in steps if line.startswith("  helm uninstall")]
    assert [line.split()[2].partition("/")[2] for line in gone][:1] == [DRIVER]
