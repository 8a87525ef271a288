"""GF784, GF79x: what the checks of clusters in tests/post_deploy report."""

from __future__ import annotations

from gpufleet.findings import Kind, Severity

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
