"""Findings about the choice for a host: versions, packages, containerd."""

from __future__ import annotations

from gpufleet.core.findings import blocker, warning

NO_PACKAGES = blocker(
    "GF930",
    "No Kubernetes packages for this distribution",
    "The Kubernetes project has no packages that run on {distribution}.",
    "Use a newer distribution for this host, or leave kubernetes_enabled at False.",
)
VERSION_UNKNOWN = blocker(
    "GF931",
    "Kubernetes version not supported",
    "Kubernetes {version} is outside the catalog of {date}: {oldest} to {newest}.",
    "Set kubernetes_version to one in this range.",
)
CGROUPS_V1 = blocker(
    "GF932",
    "Host uses cgroup v1",
    "The kubelet of Kubernetes {version} does not start on cgroup v1.",
    "Boot the host with systemd.unified_cgroup_hierarchy=1, set kubernetes_version to 1.34 or "
    'older, or, with kubeadm, accept cgroup v1: kubernetes_kubelet = {{"failCgroupV1": False}}.',
)
CGROUPS_V1_ACCEPTED = warning(
    "GF933",
    "Kubelet accepts cgroup v1",
    "kubernetes_kubelet sets failCgroupV1 = False; Kubernetes {version} no longer supports cgroup "
    "v1.",
    "Move the host to cgroup v2 before the next minor.",
)
CONTAINERD_STOPPED = blocker(
    "GF291",
    "containerd is not running",
    "Kubernetes requires containerd, which is installed on this host and does not run.",
    "Start it: `systemctl --no-reload enable --now containerd`. If it stops again: journalctl -u "
    "containerd.",
)
KUBELET_CRI_DISABLED = blocker(
    "GF945",
    "containerd's CRI plugin is disabled",
    "{file} disables the CRI plugin, as docker's containerd.io package does.",
    "Copy {file}, write a full configuration (`containerd config default > {file}`), add your own "
    "settings again, and run `systemctl restart containerd`.",
)
OVERRIDDEN = blocker(
    "GF089",
    "Imported file overrides what the kubelet requires",
    "With {file}, which containerd reads after {path}, {key} is {value}. The kubelet requires "
    "{wanted}.",
    "Set {key} to {wanted} in {file}, then run again.",
)
MIRRORS_TWICE = blocker(
    "GF090",
    "containerd has registry mirrors in its own file",
    "{file} sets registry.mirrors, and kubernetes_registry_mirrors is set. containerd's CRI plugin "
    "does not load with both.",
    "Move the mirrors of {file} to kubernetes_registry_mirrors, or remove that setting.",
)
OTHER_FOLDER = blocker(
    "GF091",
    "containerd reads mirrors from another folder",
    "{file} sets registry.config_path to {folder}, and kubernetes_registry_mirrors is set, which "
    "gpufleet writes below {ours}. containerd 2.1 and newer reads one folder only.",
    "Move the files of {folder} to {ours} and set config_path in {file} to {ours}, or remove "
    "kubernetes_registry_mirrors.",
)
UPGRADE_REFUSED = blocker(
    "GF942",
    "Kubernetes is not upgraded",
    "The node runs Kubernetes {installed}, {wanted} is requested. gpufleet does not upgrade a "
    "running cluster.",
    "Set kubernetes_version to {installed}, or remove it while nodes differ: each keeps its own. "
    "Upgrade with `kubeadm upgrade`.",
)
KERNEL_TOO_OLD = blocker(
    "GF994",
    "Kernel is too old for this Kubernetes",
    "Kubernetes {version} requires kernel {minimum} or newer: kubeadm refuses older ones. The "
    "host runs {found}.",
    "Move the host to a newer release of its distribution, or set kubernetes_version to a minor "
    "before {since}, or to {below} or newer.",
)
FIELD_TOO_NEW = blocker(
    "GF995",
    "Setting is too new for this Kubernetes",
    "{key} has {field}, which requires Kubernetes {since}; {effect}.",
    "Remove it from {key}, or set kubernetes_version to {since} or newer.",
)
CONTAINERD_MISSING = blocker(
    "GF934",
    "containerd is not installed or too old",
    "Kubernetes {version} requires containerd {minimum} or newer; the host has {found}.",
    "Install or upgrade it (package containerd or containerd.io), leave containerd_install at "
    '"auto", or set kubernetes_version to an older minor.',
)
