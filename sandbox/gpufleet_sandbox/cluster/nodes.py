"""Simulated nodes with GPUs, managed by kwok. Pure."""

from __future__ import annotations

from typing import Any

GPU_LABELS = {
    "nvidia.com/gpu.present": "true",
    "feature.node.kubernetes.io/pci-10de.present": "true",
}


def node(name: str, *, gpus: int, version: str, labelled: bool = True) -> dict[str, Any]:
    """A Node with that many GPUs; `labelled`: with the labels that NFD would set."""
    labels = {
        "type": "kwok",
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        **(GPU_LABELS if gpus and labelled else {}),
    }
    resources = {"cpu": "64", "memory": "512Gi", "pods": "110", "ephemeral-storage": "1Ti"}
    if gpus:
        resources["nvidia.com/gpu"] = str(gpus)
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": labels,
            "annotations": {"node.alpha.kubernetes.io/ttl": "0"},
        },
        "status": {
            "capacity": resources,
            "allocatable": resources,
            "nodeInfo": {
                "architecture": "amd64",
                "operatingSystem": "linux",
                "kubeletVersion": f"v{version}",
                "kubeProxyVersion": f"v{version}",
                "containerRuntimeVersion": "containerd://1.7.24",
                "kernelVersion": "simulated",
                "osImage": "simulated by kwok",
                "machineID": "",
                "systemUUID": "",
                "bootID": "",
            },
        },
    }


def names(count: int) -> list[str]:
    return [f"gpu-{number + 1}" for number in range(count)]
