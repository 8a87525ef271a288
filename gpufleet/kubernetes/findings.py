"""Findings of Kubernetes on hosts."""

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
    "Set kubernetes_version to one of these minors.",
)
CGROUPS_V1 = blocker(
    "GF932",
    "Control groups are version 1",
    "The kubelet of Kubernetes {version} does not start with control groups of version 1.",
    "Boot the host with systemd.unified_cgroup_hierarchy=1, set kubernetes_version to 1.34 or "
    'older, or accept version 1: kubernetes_kubelet = {{"failCgroupV1": False}}.',
)
CGROUPS_V1_ACCEPTED = warning(
    "GF933",
    "Control groups of version 1 are accepted",
    "kubernetes_kubelet sets failCgroupV1 = False; Kubernetes {version} supports this no longer.",
    "Move the host to control groups of version 2 before the next minor.",
)
NO_CONTAINERD = blocker(
    "GF934",
    "containerd is not installed",
    "Kubernetes requires containerd {minimum} or newer. The host has none, and gpufleet installs "
    "none here: it knows no such package for the distribution, or containerd_install forbids it.",
    "Install the package containerd (or containerd.io) first, or leave containerd_install at "
    '"auto".',
)
CONTAINERD_STOPPED = blocker(
    "GF291",
    "containerd is not running",
    "Kubernetes requires containerd, which is installed on this host and does not run.",
    "Start it: systemctl enable --now containerd. If it stops again: journalctl -u containerd.",
)
CONTAINERD_TOO_OLD = blocker(
    "GF935",
    "containerd is too old",
    "Kubernetes {version} requires containerd {minimum} or newer; the host has {installed}.",
    "Upgrade containerd, or set kubernetes_version to an older minor.",
)
SWAP_ON = blocker(
    "GF936",
    "Swap is on",
    "The kubelet does not start while swap is on: {devices}.",
    "Turn it off (swapoff -a) and remove it from /etc/fstab, or allow it: "
    'kubernetes_kubelet = {{"failSwapOn": False}}.',
)
PORT_TAKEN = blocker(
    "GF937",
    "A port of Kubernetes is in use",
    "Port {port} is in use by {who}.",
    "Stop that process, or leave kubernetes_enabled at False for this host.",
)
TOO_SMALL = blocker(
    "GF938",
    "Host is too small for a control plane",
    "The host has {found}; a control plane requires {required}.",
    "Choose another host for the group control_plane.",
)
NO_DNS_NAME = blocker(
    "GF939",
    "Host name is not a DNS name",
    "The host is called {name}, which cannot be the name of a node.",
    "Rename it with hostnamectl: lower-case letters, digits, hyphens and dots, at most 63 in all.",
)
LEFTOVERS = blocker(
    "GF940",
    "Another cluster's files on the host",
    "{paths}: gpufleet did not create these.",
    "Check that no cluster uses this host, then run `kubeadm reset` there and remove the files. A "
    "link in /sys/class/net goes with `ip link delete NAME`.",
)
FOREIGN_NODE = blocker(
    "GF941",
    "Host is a node of another cluster",
    "A kubelet runs here that gpufleet did not install.",
    "Leave kubernetes_enabled at False for this host, or take it out of its cluster first.",
)
UPGRADE_REFUSED = blocker(
    "GF942",
    "Kubernetes is not upgraded",
    "The node runs Kubernetes {installed}, {wanted} is requested. gpufleet does not upgrade a "
    "running cluster.",
    "Set kubernetes_version to {installed}, and upgrade with `kubeadm upgrade`.",
)
NO_CONTROL_PLANE = blocker(
    "GF943",
    "No control plane in the inventory",
    "The group control_plane is missing or empty, and a cluster begins there.",
    "Put one host into the group control_plane.",
)
SEVERAL_CONTROL_PLANES = blocker(
    "GF958",
    "Several control planes without an endpoint",
    "The group control_plane has {names}, and kubernetes_endpoint is not set: nodes and users need "
    "one address for all of them.",
    "Set kubernetes_endpoint to the address of your load balancer, virtual IP address or DNS name, "
    "or leave one host in the group control_plane.",
)
EVEN_CONTROL_PLANES = warning(
    "GF080",
    "Even number of control planes",
    "The group control_plane has {count} hosts: etcd stands the loss of {lost}, as with {fewer}.",
    "Use {fewer} or {more}.",
)
ENDPOINT_ANSWERS = blocker(
    "GF081",
    "Another cluster answers at the endpoint",
    "A Kubernetes API ({version}) answers at {endpoint}, and no control plane of the run is a node "
    "of a cluster.",
    "Set kubernetes_endpoint to an address that leads to these hosts alone. To extend the cluster "
    "that answers, run with one of its control planes too.",
)
ENDPOINT_DIFFERS = blocker(
    "GF082",
    "Endpoint of a cluster does not change",
    "The cluster's endpoint is {found}, kubernetes_endpoint is {wanted}. It is in the certificates "
    "and settings of all nodes.",
    'Set kubernetes_endpoint = "{found}", or destroy the cluster and create it again.',
)
NO_ENDPOINT = blocker(
    "GF083",
    "Cluster was created without an endpoint",
    "The cluster's API server is known as {found}, an address of this host alone: no other control "
    "plane can join.",
    "Leave one host in the group control_plane, or destroy the cluster and create it again with "
    "kubernetes_endpoint.",
)
CONTROL_JOIN_FAILED = blocker(
    "GF084",
    "Control plane did not join the cluster",
    "The command kubeadm join failed. Its output and the logs of its pods follow.",
    "Correct the cause and run again: the host is reset first. The etcd member of a control plane "
    "that is lost for good has to be removed before: docs/bare-hosts.md.",
)
CERTIFICATES_STAY = warning(
    "GF085",
    "Certificates of the join are still in the cluster",
    "The Secret kubeadm-certs could not be removed through {control_plane}. It is encrypted with a "
    "key that existed in this run alone, and expires after two hours.",
    "To remove it now: kubectl -n kube-system delete secret kubeadm-certs",
)
QUORUM_AT_RISK = blocker(
    "GF086",
    "Without this control plane, the cluster would stop",
    "The other control planes must have a majority without this host. What was found follows.",
    "Repair the other control planes, or remove the lost ones (docs/bare-hosts.md), and run again.",
)
MEMBER_STAYS = blocker(
    "GF087",
    "Control plane did not leave etcd",
    "The command kubeadm reset could not remove the host's etcd member. Its output follows.",
    "Remove the member on another control plane (docs/bare-hosts.md), and run again.",
)
NODE_STAYS = blocker(
    "GF088",
    "Node is still listed in its cluster",
    "The host has left the cluster, but its Node could not be deleted. The output follows.",
    "Correct the cause and run again, or run kubectl delete node and remove {path} on the host.",
)
CONTROL_PLANE_MISSING = blocker(
    "GF944",
    "Control plane is not part of the run",
    "To join, the host needs a token from {control_plane}, which is not part of this run.",
    "Run again with --limit {control_plane} in addition.",
)
CONTROL_PLANE_FAILED = blocker(
    "GF959",
    "Control plane failed",
    "To join, the host needs a token from {control_plane}, which failed in this run.",
    "Correct the errors of {control_plane} and run again.",
)
NO_TOKEN = blocker(
    "GF294",
    "Control plane gives no token",
    "To join, the host needs a token, and {control_plane} made none: {answer}.",
    "See on {control_plane} whether its API server runs (journalctl -u kubelet), and run again.",
)
CLUSTER_DIFFERS = blocker(
    "GF960",
    "Setting of the cluster differs between hosts",
    "{key} of this host is not that of the control plane {control_plane}, and a cluster has one.",
    "Set {key} once for all hosts of the cluster.",
)
VERSION_AHEAD = blocker(
    "GF961",
    "Host is newer than its control plane",
    "The host has or would get Kubernetes {installed}, its control plane has {cluster}: a newer "
    "kubelet must not join.",
    "Set kubernetes_version to {cluster} and run again.",
)
PART_CHANGED = blocker(
    "GF962",
    "Node has another role in its cluster",
    "The host joined as {before} and is {wanted} in the inventory.",
    "Put it back into its group, or take it out of the cluster first: gpufleet cluster destroy.",
)
PLANE_RESET = blocker(
    "GF292",
    "Control plane was reset outside of gpufleet",
    "The host was the control plane, and /etc/kubernetes/kubelet.conf is missing: its cluster is "
    "gone.",
    "Restore /etc/kubernetes from a backup, or destroy what is left and begin again: gpufleet "
    "cluster destroy.",
)
CRI_DISABLED = blocker(
    "GF945",
    "containerd's CRI plugin is disabled",
    "{file} disables the CRI plugin, as docker's containerd.io package does.",
    "Write a full configuration: `containerd config default > {file}`.",
)
INIT_FAILED = blocker(
    "GF946",
    "Control plane did not start",
    "The command kubeadm init failed. Its output and the logs of its pods follow.",
    "Correct the cause and run again: the host is reset first.",
)
JOIN_FAILED = blocker(
    "GF947",
    "Host did not join the cluster",
    "The command kubeadm join failed. Its output follows.",
    "Correct the cause and run again: the host is reset first.",
)
NETWORK_FAILED = blocker(
    "GF948",
    "Network of the pods not installed",
    "The API server refused the objects of {network}. Its answer follows.",
    "Correct the cause and run again.",
)
NOT_READY = blocker(
    "GF949",
    "Node is not Ready",
    "The node, or the network of its pods, is not Ready after {seconds} s. Its condition follows.",
    "See `journalctl -u kubelet` on the host, correct the cause and run again.",
)
DUPLICATE_MACHINE = blocker(
    "GF950",
    "Two hosts with one identity",
    "{others} has the same {what} ({value}): Kubernetes takes clones for one node.",
    "Give this host its own. For a machine id: rm /etc/machine-id && systemd-machine-id-setup, "
    "then reboot; for a name: hostnamectl.",
)
PREPARE_FAILED = blocker(
    "GF951",
    "Kernel not prepared for Kubernetes",
    "Modules or settings that Kubernetes needs are not available. The output follows.",
    "Install the kernel's module package, or correct the setting that is refused.",
)
CLOCK_APART = blocker(
    "GF953",
    "Clock too far off for Kubernetes",
    "The host's clock differs by {seconds} seconds from this machine's: certificates and tokens "
    "are refused.",
    "Set the clock: timedatectl set-ntp true, or chronyc makestep.",
)
OTHER_CLUSTER = blocker(
    "GF963",
    "Host is a node of another cluster by now",
    "The certificate authority on the host is not that of the cluster that gpufleet made it a node "
    "of, so it is not reset.",
    "If that cluster may go, run `kubeadm reset` on the host and remove "
    "/var/lib/gpufleet/kubernetes.*.",
)
NODE_ELSEWHERE = blocker(
    "GF290",
    "Node of another cluster than the inventory's",
    "gpufleet made the host a node of a cluster whose control plane is not {control_plane}, or "
    "whose control plane was destroyed since.",
    "Take the host out of that cluster first: gpufleet cluster destroy, with the inventory of that "
    "cluster where there is one.",
)
ACCESS_UNUSABLE = blocker(
    "GF964",
    "Kubeconfig of the control plane is not usable",
    "/etc/kubernetes/admin.conf on the host is not one that kubeadm writes: {problem}.",
    "Look at the file: gpufleet copies certificates and a server, and nothing that runs programs.",
)
KUBECONFIG_NOT_WRITTEN = blocker(
    "GF293",
    "Kubeconfig not written",
    "{path} on this machine cannot be written: {problem}.",
    "Correct the path or its permissions, or set kubernetes_kubeconfig to another one, and run "
    "again. The cluster itself is up.",
)
KUBECONFIG_OTHERS = blocker(
    "GF954",
    "Kubeconfig file belongs to something else",
    "{path} on this machine is not the access to this cluster alone, and is not replaced.",
    "Move the file, or set kubernetes_kubeconfig to another path. The cluster itself is up.",
)
GPU_PODS_RUN = blocker(
    "GF955",
    "Pods use GPUs",
    "{count} pods use GPUs of this cluster: {names}.",
    "Let them end or delete them, or add --ignore-gpu-pods.",
)
GPU_PODS_UNKNOWN = blocker(
    "GF956",
    "Unknown whether pods use GPUs",
    "The cluster cannot be asked for pods that use GPUs: {reason}",
    "Make the cluster reachable, or add --ignore-gpu-pods.",
)
NOT_NODES = blocker(
    "GF295",
    "Hosts are missing from their cluster",
    "The cluster has {nodes} nodes for {hosts} hosts; it knows no name or address of {names}.",
    "If the node was deleted by hand: systemctl restart kubelet on the host registers it. Else "
    "run gpufleet cluster create.",
)
NO_KUBECONFIG = blocker(
    "GF957",
    "No kubeconfig in the inventory",
    "No host of the group control_plane sets {key}.",
    "Set {key} to the path where the cluster's access is written.",
)
RESET_FAILED = blocker(
    "GF952",
    "Host still in its cluster",
    "The command kubeadm reset failed. Its output follows.",
    "Correct the cause and run again.",
)
NO_ROOM = blocker(
    "GF965",
    "Not enough disk space for image archives",
    "{count} archives need some {needed} MiB, themselves and unpacked; {path} has {free} MiB free.",
    "Free space on the host, or shorten kubernetes_image_archives.",
)
IMPORT_FAILED = blocker(
    "GF966",
    "Container images not imported",
    "containerd did not take the images of {archive}. Its answer follows.",
    "Compare the archive with a whole copy: `ctr images import FILE` on a machine with containerd.",
)
ARCHIVE_CHANGED = blocker(
    "GF967",
    "Image archive changed during the run",
    "{archive} is not the file any more that the run began with.",
    "Run again once it is complete.",
)
