"""Findings about steps: images of an archive, start, join, leave."""

from __future__ import annotations

from gpufleet.core.findings import blocker, warning

NO_ROOM = blocker(
    "GF965",
    "Not enough disk space for image archives",
    "{count:archive needs|archives need} some {needed} MiB, packed and unpacked; {path} "
    "has {free} MiB free.",
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
    "{archive} is no longer the file that the run started with.",
    "Run again once it is complete.",
)
CERTIFICATES_STAY = warning(
    "GF085",
    "Certificates of the join are still in the cluster",
    "The Secret kubeadm-certs could not be removed through {control_plane}. It is encrypted with "
    "a key that existed only in this run, and expires after two hours.",
    "To remove it now: kubectl -n kube-system delete secret kubeadm-certs",
)
QUORUM_AT_RISK = blocker(
    "GF086",
    "Without this control plane, the cluster would stop",
    "The other control planes must have a majority without this host. What was found follows.",
    "Repair the other control planes, or remove the lost ones (docs/how-to/bare-hosts.md), "
    "and run again.",
)
MEMBER_STAYS = blocker(
    "GF087",
    "Control plane did not leave etcd",
    "The command kubeadm reset could not remove the host's etcd member. Its output follows.",
    "Remove the member on another control plane (docs/how-to/bare-hosts.md), and run again.",
)
NODE_STAYS = blocker(
    "GF088",
    "Node is still listed in its cluster",
    "The host has left the cluster, but its Node could not be deleted. The output follows.",
    "Correct the cause and run again, or run kubectl delete node and remove {path} on the host.",
)
NO_TOKEN = blocker(
    "GF294",
    "No join token from the control plane",
    "The host needs a token to join, and {control_plane} did not create one: {answer}.",
    "On {control_plane}, check that the API server runs (journalctl -u kubelet), then run again.",
)
KUBEADM_FAILED = blocker(
    "GF946",
    "Command kubeadm failed",
    "The command kubeadm {verb} failed. Its output follows, and the logs of its pods if any.",
    "Correct the cause and run again: a host that has not joined is reset first. The etcd member "
    "of a control plane that is lost for good has to be removed before: docs/how-to/bare-hosts.md.",
)
NETWORK_FAILED = blocker(
    "GF948",
    "Pod network not installed",
    "The API server refused the objects of {network}. Its answer follows.",
    "Correct the cause and run again.",
)
NODE_NOT_READY = blocker(
    "GF949",
    "Node is not Ready",
    "The node, or the network of its pods, is not Ready after {seconds} s. Its condition follows.",
    "See `journalctl -u kubelet` on the host, correct the cause and run again.",
)
