"""Findings about a host that cannot become a node as it is."""

from __future__ import annotations

from gpufleet.core.findings import blocker, warning

SWAP_ON = blocker(
    "GF936",
    "Swap is on",
    "The kubelet does not start while swap is on: {devices}.",
    "Turn it off (swapoff -a) and keep it off at boot: remove it from /etc/fstab, or from the "
    "settings of zram-generator or Azure's waagent that make it. Or allow it: "
    'kubernetes_kubelet = {{"failSwapOn": False}}.',
)
FIREWALL = warning(
    "GF092",
    "Firewall firewalld is active",
    "The firewall firewalld runs on this host. If it closes ports between hosts, nodes do not "
    "join, and pods do not reach each other.",
    "Open these ports between all hosts: {ports}. Let pods pass: firewall-cmd --permanent "
    "--zone=trusted --add-source={pods}, then firewall-cmd --reload. Or turn firewalld off.",
)
CLUSTER_PORT_TAKEN = blocker(
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
    "Check that no cluster uses this host, then run `kubeadm reset` or k3s-uninstall.sh there "
    "and remove the files. A link in /sys/class/net goes with `ip link delete NAME`.",
)
FOREIGN_NODE = blocker(
    "GF941",
    "Host is a node of another cluster",
    "A kubelet runs here that gpufleet did not install.",
    "Leave kubernetes_enabled at False for this host, or take it out of its cluster first.",
)
DUPLICATE_MACHINE = blocker(
    "GF950",
    "Two hosts with one identity",
    "{others} has the same {what} ({value}): Kubernetes takes clones for one node.",
    "Give this host its own. For a machine id: `rm -f /etc/machine-id /var/lib/dbus/machine-id && "
    "systemd-machine-id-setup`, then reboot; for a name: hostnamectl.",
)
CLOCK_APART = blocker(
    "GF953",
    "Clock too far off for Kubernetes",
    "The host's clock differs by {seconds:second|seconds} from this machine's: certificates "
    "and tokens are refused.",
    "Set the clock: timedatectl set-ntp true, or chronyc makestep.",
)
PREPARE_FAILED = blocker(
    "GF951",
    "Kernel not prepared for Kubernetes",
    "Modules or settings that Kubernetes needs are not available. The output follows.",
    "Install the kernel's module package (on EL 10: `dnf install kernel-modules-extra-$(uname "
    "-r)`), or correct the setting that is refused.",
)
