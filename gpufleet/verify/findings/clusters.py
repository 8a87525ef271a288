"""Findings of the cluster checks in tests/post_deploy."""

from __future__ import annotations

from gpufleet.core.findings import blocker
from gpufleet.verify.findings import check

CLUSTER_SILENT = blocker(
    "GF790",
    "Cluster API does not respond, or refuses a request",
    "The API server of the cluster does not respond, or refuses a request: {why}",
    "Check that the kubeconfig in the inventory reaches it: `kubectl get nodes`. If the server "
    "refuses a request, it names the missing permission or the policy.",
)
GPU_NODES_EXPECTED = check(
    "GF791",
    "No node advertises GPUs",
    "At least one node must have allocatable nvidia.com/gpu.",
    "Check that nodes have GPUs and that the device plugin runs on them; run "
    "`gpufleet apply` for this cluster.",
)
FEWER_GPUS_ADVERTISED = check(
    "GF792",
    "Node advertises fewer GPUs than it has",
    "Allocatable nvidia.com/gpu of each node must equal its capacity, and the count of GPU feature "
    "discovery times device_plugin_time_slicing.",
    "Read the device plugin's log on that node, and run `nvidia-smi` there.",
)
NOT_SHARED = check(
    "GF751",
    "GPUs of a node are not shared as wanted",
    "A node with gpu_sharing or gpu_mig must have the label nvidia.com/device-plugin.config, and "
    "advertise what it names: GPUs times gpu_replicas, or MIG devices.",
    "Run `gpufleet apply` for this cluster. If the label is right, read the log of the device "
    "plugin on that node. After a change of gpu_mig, restart its pod there: the plugin reads "
    "devices when it starts.",
)
NOT_CLAIMABLE = check(
    "GF752",
    "GPUs of a node cannot be claimed",
    'A node with gpu_sharing = "dra" must have the label gpufleet/dra-driver=true and a '
    "ResourceSlice of the driver gpu.nvidia.com that offers each of its GPUs, whole or as the MIG "
    "devices of gpu_mig.",
    "Run `gpufleet apply` for this cluster. If the label is right, read the log of the pod "
    "dra-driver-nvidia-gpu-kubelet-plugin on that node. After a change of gpu_mig, restart this "
    "pod: the driver reads devices when it starts.",
)
NOT_AS_APPLIED = check(
    "GF758",
    "GPU stack differs from the inventory",
    "Each release of the GPU stack must be deployed in the chart version that "
    "cluster_chart_versions or the catalog selects, the device plugin and dcgm-exporter must have "
    "a ready pod on every GPU node, and Grafana's Service the node port that "
    "monitoring_grafana_node_port sets.",
    "Run `gpufleet apply` for this cluster.",
)
GPU_POD = check(
    "GF795",
    "GPU pod does not complete",
    "A test pod that requests a GPU must be scheduled and succeed.",
    "Its last event is named above; the pod is deleted. Usual reasons: no free GPU, no runtime, no "
    "image, a policy of the namespace default.",
)
VECTOR_ADD = check(
    "GF796",
    "CUDA vectorAdd failed in a pod",
    "The log of the test pod must report that vectorAdd passed on the GPU.",
    "Check that nvidia is the pod's runtime and that `nvidia-smi` works on the node.",
)
NOT_SCRAPED = check(
    "GF797",
    "Prometheus does not scrape the exporter",
    "A ServiceMonitor that Prometheus selects must exist, and every exporter pod must be a "
    "healthy target.",
    "Compare the labels of the ServiceMonitor with those that Prometheus selects; run "
    "`gpufleet apply` for this cluster.",
)
SCRAPED_TWICE = check(
    "GF708",
    "GPUs are scraped by several jobs",
    "One job of Prometheus must collect the metrics of a GPU: sums of other dashboards, rules and "
    "autoscalers count each of its series.",
    "Remove one of the jobs: a scrape job of NVIDIA's guide (gpu-metrics), an annotation "
    "prometheus.io/scrape on the exporter's pods or Service, or a second ServiceMonitor.",
)
MONITORING_DOWN = check(
    "GF709",
    "Prometheus or Alertmanager does not run",
    "The Prometheus and the Alertmanager that gpufleet installed must be available, and Prometheus "
    "must answer queries through the API server.",
    "Read the events of their pods and claims: kubectl -n monitoring get events; run "
    "`gpufleet apply` for this cluster, which waits for them. If they run, let the control plane "
    "reach their ports on the nodes (EKS: the nodes' security group; private GKE: the firewall).",
)
NO_POD_LABELS = check(
    "GF798",
    "Metrics lack pod labels",
    "Metrics of a GPU that a pod uses must carry the labels of that pod.",
    "Check that the exporter reads the kubelet's pod-resources socket. If the kubelet has another "
    "--root-dir, set kubeletPath in monitoring_exporter_values to the folder pod-resources there.",
)
OPERATOR_STATE = check(
    "GF784",
    "GPU Operator is not ready",
    "The ClusterPolicy must be ready, and so must the operator's operands.",
    "For the reason, run kubectl describe clusterpolicy and check the pods in its namespace; run "
    "`gpufleet apply` for this cluster.",
)
LOAD_ENDED = check(
    "GF777",
    "Load test did not finish",
    "The load test's Job must finish in time, with a pod on every free GPU.",
    "Read the pods' output. verify_load_image and verify_load_command select another program, "
    "verify_load_start_seconds allows more time to pull the image.",
)
LOAD_UNSEEN = check(
    "GF779",
    "GPU under load appears idle in Prometheus",
    "Prometheus must report a GPU as busy while the load test runs on it.",
    "Compare with nvidia-smi dmon on the node: either the GPU is idle, or its metrics are wrong.",
)
LOAD_LEFT = check(
    "GF707",
    "Load test's Job left in the cluster",
    "The Job of the load test must be deleted at its end: its pods hold GPUs until they finish.",
    "Delete it: kubectl -n default delete job NAME",
)
