"""The sandbox as an inventory: data of inventories/sandbox.py."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gpufleet_sandbox.kinds import KINDS, MIRROR
from gpufleet_sandbox.paths import cache_dir, state_dir
from gpufleet_sandbox.state import HostState, load_state

NEWEST = "1.36"


def nodes(sandbox: str) -> list[tuple[str, dict[str, Any]]]:
    """(name, data) of every GPU node of a sandbox; SandboxError GF603 if it is not up."""
    hosts = load_state(sandbox).hosts.values()
    return [(host.name, _data(host)) for host in hosts if host.kind != MIRROR]


def _data(host: HostState) -> dict[str, Any]:
    """Connection data of the host, and the driver branch of its kind."""
    data: dict[str, Any] = {
        "ssh_hostname": host.address,
        "ssh_user": host.user,
        "ssh_key": host.key,
        "ssh_known_hosts_file": host.known_hosts,
        "ssh_strict_host_key_checking": "yes",
    }
    if host.user != "root":
        data["_sudo"] = True
    branch = KINDS[host.kind].driver_branch
    return {**data, "driver_branch": branch} if branch else data


def group_data() -> dict[str, Any]:
    """URLs of the mirror's copies of NVIDIA's repositories, and their signing key."""
    data: dict[str, Any] = {
        "driver_repo_url": f"http://{MIRROR}/compute/cuda/repos",
        "toolkit_repo_url": f"http://{MIRROR}/libnvidia-container",
    }
    fingerprint = cache_dir() / "mirror" / "fingerprint"
    if fingerprint.exists():
        key = fingerprint.read_text().strip()
        data |= {"driver_repo_key_fingerprint": key, "toolkit_repo_key_fingerprint": key}
    return data


def kubeconfig(sandbox: str) -> Path:
    """Path of the kubeconfig for the cluster of a sandbox's hosts."""
    return state_dir(sandbox) / "kubeconfig"


def stack_data(sandbox: str, charts: str) -> dict[str, Any]:
    """Settings of the GPU stack on that cluster, without monitoring: gpufleet_sandbox.stack has
    those. `charts`: a folder of chart archives."""
    # the inventory of hosts alone is loaded by every run, and these take half as long as pyinfra
    from gpufleet_sandbox.cluster.programs import helm
    from gpufleet_sandbox.cluster.versions import versions
    from gpufleet_sandbox.kubernetes.images import GPU_PROBE

    plugin = versions().programs["nvidia-device-plugin"].version.removeprefix("v")
    return {
        "cluster_kubeconfig": str(kubeconfig(sandbox)),
        "cluster_helm": str(helm(3, lambda _: None)),
        "cluster_chart_dir": charts,
        "cluster_chart_versions": {"nvidia-device-plugin": plugin},
        "device_plugin_label_nodes": True,
        "device_plugin_runtime_class": "nvidia",
        "device_plugin_gfd": False,
        "monitoring_enabled": False,
        "verify_gpu_image": GPU_PROBE,  # CUDA's own sample cannot be had
    }


def cluster_data(sandbox: str) -> dict[str, Any]:
    """Settings of Kubernetes on sandbox hosts: the mirror's packages and images, and settings that
    a container on control groups of version 1 needs."""
    from gpufleet_sandbox.cluster.versions import versions

    release = load_state(sandbox).kubernetes or versions().kubernetes.releases[NEWEST]
    names = ("registry.k8s.io", "ghcr.io", "nvcr.io", "docker.io", "quay.io")
    fingerprint = cache_dir() / "mirror" / "kubernetes" / "fingerprint"
    return {
        "kubernetes_enabled": True,
        "kubernetes_version": release,
        "kubernetes_repo_url": f"http://{MIRROR}",
        "kubernetes_repo_key_fingerprint": fingerprint.read_text().strip(),
        "kubernetes_registry_mirrors": {name: f"http://{MIRROR}/v2/{name}" for name in names},
        "kubernetes_kubeconfig": str(kubeconfig(sandbox)),
        "kubernetes_etcd_tag": versions().etcd_tag(release),
        "kubernetes_kubelet": {
            "cgroupDriver": "cgroupfs",
            "failCgroupV1": False,
            "failSwapOn": False,
            "enforceNodeAllocatable": [],
            "evictionHard": {
                "memory.available": "50Mi", "nodefs.available": "1%", "imagefs.available": "1%",
            },
            "shutdownGracePeriod": "20s",
            "shutdownGracePeriodCriticalPods": "5s",
        },
        "kubernetes_kube_proxy": {"mode": "iptables", "conntrack": {"maxPerCore": 0, "min": None}},
    }  # fmt: skip
