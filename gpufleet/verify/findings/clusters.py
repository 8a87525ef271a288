"""What the checks of clusters in tests/post_deploy report."""

from __future__ import annotations

from gpufleet.core.findings import Kind, Severity

_FOUND = "expected {expected}; found {found}"
_CLUSTER = "run deploys/gpu_cluster.py for this cluster"


def _check(code: str, title: str, remedy: str) -> Kind:
    return Kind(code, Severity.BLOCKER, title, _FOUND, remedy)


CLUSTER_SILENT = Kind(
    "GF790",
    Severity.BLOCKER,
    "The cluster does not answer",
    "the API of the cluster gives no answer: {why}",
    "see that the kubeconfig of the inventory reaches it: kubectl get nodes",
)
NO_GPU_NODES = _check(
    "GF791",
    "No node offers GPUs",
    f"see that nodes have GPUs and the device plugin runs on them; {_CLUSTER}",
)
GPUS_MISSING = _check(
    "GF792",
    "A node offers fewer GPUs than it has",
    "read the log of the device plugin on that node, and `nvidia-smi` there",
)
CHART_VERSION = _check("GF758", "A release is of another chart version", _CLUSTER)
PLUGIN_PODS = _check("GF793", "The device plugin is not on every GPU node", _CLUSTER)
EXPORTER_PODS = _check("GF794", "The exporter is not on every GPU node", _CLUSTER)
GPU_POD = _check(
    "GF795",
    "A pod with a GPU does not finish",
    "kubectl describe pod shows why: no free GPU, no runtime, no image",
)
VECTOR_ADD = _check(
    "GF796",
    "A container computes nothing on its GPU",
    "see that nvidia is the pod's runtime and that `nvidia-smi` works on the node",
)
NOT_SCRAPED = _check(
    "GF797",
    "Prometheus does not scrape the exporter",
    f"compare the labels of the ServiceMonitor with what Prometheus selects; {_CLUSTER}",
)
NO_POD_LABELS = _check(
    "GF798",
    "Metrics do not name the pods that use the GPUs",
    "see that the exporter reads the kubelet's pod-resources socket",
)
GRAFANA_CLOSED = _check("GF799", "Grafana is not where it was asked for", _CLUSTER)
OPERATOR_STATE = _check(
    "GF784",
    "The GPU Operator is not done",
    f"kubectl describe clusterpolicy, and the pods of its namespace, show why; {_CLUSTER}",
)
LOAD_ENDED = _check(
    "GF777",
    "A load test does not come to its end",
    "read what the program or the scheduler says; verify_load_image and verify_load_cuda name "
    "another image and program, verify_load_start_seconds gives the image more time",
)
LOAD_SLOW = _check(
    "GF778",
    "A GPU computes unsteadily, or slower than its neighbours",
    "compare clocks, power limit and temperature of the GPUs: "
    "nvidia-smi -q -d CLOCK,POWER,PERFORMANCE; dcgmi diag -r 3 on the drained node",
)
LOAD_UNSEEN = _check(
    "GF779",
    "Prometheus saw a GPU idle that was under load",
    "compare with nvidia-smi dmon on the node: the GPU does not work, or its metrics are wrong",
)
LOAD_THROTTLED = _check(
    "GF782",
    "Clocks were held down under load",
    "see to cooling and power supply: nvidia-smi -q -d TEMPERATURE,POWER,PERFORMANCE on the node",
)
LOAD_XID = _check(
    "GF783",
    "A GPU reported an error under load",
    "look up the XID in docs/runbooks and in the kernel's log of the node; drain it until then",
)
