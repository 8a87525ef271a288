"""Findings about k3s."""

from __future__ import annotations

from gpufleet.core.findings import blocker

NO_EXACT_VERSION = blocker(
    "GF902",
    "k3s needs an exact version",
    "kubernetes_version is {version}; k3s requires an exact version.",
    "Set kubernetes_version to a release of k3s, such as v1.36.3+k3s1.",
)
VERSION_OF_K3S = blocker(
    "GF903",
    "k3s version set for kubeadm",
    "kubernetes_version is {version}, and kubernetes_distribution is kubeadm.",
    'Set kubernetes_distribution to "k3s", or kubernetes_version to a version of Kubernetes.',
)
NO_PROGRAM = blocker(
    "GF904",
    "No source for k3s",
    "This host needs the k3s file {name}. {reason}",
    "Add files of the release to kubernetes_k3s_files, or set kubernetes_k3s_url to a mirror and "
    "kubernetes_k3s_sha256 to the sha256 of each file.",
)
NO_ARCHITECTURE = blocker(
    "GF905",
    "No k3s for this architecture",
    "gpufleet does not install k3s on {architecture}.",
    "Use a host with one of these: {known}.",
)
WRONG_DIGEST = blocker(
    "GF906",
    "File of k3s differs from its sha256",
    "{path} has the sha256 {found}; kubernetes_k3s_sha256 has {wanted}.",
    "Fetch the file again, or correct its sha256.",
)
SETTINGS_OF_KUBEADM = blocker(
    "GF907",
    "Settings not supported with k3s",
    "{keys}: for kubeadm only, but kubernetes_distribution is k3s.",
    "Remove them. kubernetes_k3s_config has options of k3s, and kubernetes_k3s_files may have "
    "archives of images.",
)
SEVERAL_SERVERS = blocker(
    "GF908",
    "Several k3s servers are not supported",
    "The group control_plane has {names}. Another server would need the token of the first, which "
    "never expires and grants full access, so gpufleet does not copy it to other hosts.",
    "Leave one host in the group control_plane, or use kubeadm for several.",
)
UPGRADE_REFUSED = blocker(
    "GF909",
    "k3s is not upgraded",
    "The node runs k3s {installed}, {wanted} is requested. gpufleet does not upgrade a running "
    "cluster.",
    "Set kubernetes_version to {installed}, and upgrade manually: "
    "https://docs.k3s.io/upgrades/manual",
)
CLUSTER_CHANGES = blocker(
    "GF089",
    "k3s cluster setting cannot be changed",
    "{path} on the server does not have {wanted}. k3s uses it only when the cluster is created: "
    "with another network k3s exits, with another endpoint users cannot reach it.",
    "Set {key} to what the file has, or destroy the cluster and create it again.",
)
DISTRIBUTION_CHANGED = blocker(
    "GF921",
    "Node was created with another distribution",
    "{before} made this host a node, or started to; kubernetes_distribution is {wanted}.",
    'Set kubernetes_distribution = "{before}", or take the host out of its cluster first: gpufleet '
    "cluster destroy.",
)
NOT_INSTALLED = blocker(
    "GF922",
    "File of k3s is not on the host",
    "{name} could not be installed as {target}. The output follows.",
    "Check the mirror, its sha256 and the free space of the host, and run again.",
)
OTHER_PROGRAM = blocker(
    "GF923",
    "Program is not the k3s that is requested",
    "{path} does not report {version}. What it reports follows.",
    "Use the files of one release, and its version in kubernetes_version.",
)
NOT_STARTED = blocker(
    "GF924",
    "k3s did not start",
    "The unit {unit} has no certificate of a cluster after {seconds} s. The last lines of its log "
    "follow.",
    "Correct the cause and run again: the host is reset first.",
)
NOT_RESTARTED = blocker(
    "GF926",
    "k3s did not restart",
    "The unit {unit} was restarted for its new files, and its kubelet does not respond. The last "
    "lines of its log follow.",
    "Correct kubernetes_k3s_config or the mirrors, and run again. Its pods keep running.",
)
SERVER_GONE = blocker(
    "GF927",
    "k3s server was removed outside gpufleet",
    "The host was the server, and {path} is missing: its cluster is gone.",
    "Restore it from a backup, or destroy what is left and start again: gpufleet cluster destroy.",
)
REMAINS = blocker(
    "GF925",
    "k3s could not be removed",
    "A step that removes k3s failed. The output follows.",
    "Correct the cause and run again.",
)
