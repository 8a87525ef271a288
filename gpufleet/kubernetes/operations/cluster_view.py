"""The state of a cluster for `gpufleet cluster`, and reasons not to destroy it."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpufleet.core.findings import Finding
from gpufleet.core.inventory import KUBECONFIG_KEY, ListedHost, kubeconfig_of
from gpufleet.core.names import list_names
from gpufleet.core.paths import expand_user_path
from gpufleet.core.stopped import Stopped
from gpufleet.kube.operations.access import KubeAccess
from gpufleet.kube.operations.api import ClusterApi
from gpufleet.kubernetes.access import authority_digests
from gpufleet.kubernetes.findings import access as found
from gpufleet.kubernetes.members import (
    NodeMember,
    gpu_pods,
    parse_members,
    unknown_hosts,
    unready_pods,
)

CLUSTER_NAMESPACES = ("kube-system", "kube-flannel")  # namespaces of the system pods
REMOVED = {"destroy_cluster": "Kubernetes", "remove": "Driver and container toolkit"}
CLUSTER_POLL_SECONDS = 1.0  # seconds between two reads of a cluster


class Unknown(Exception):
    """The cluster cannot be read. `text` has the reason, with codes and remedies if known."""

    def __init__(self, reason: str, *known: Finding) -> None:
        super().__init__(reason)
        self.text = "\n".join(each.paragraph for each in known) or reason


@dataclass(frozen=True, slots=True)
class View:
    """A cluster's nodes, and its system pods that do not run."""

    version: str
    members: tuple[NodeMember, ...]
    troubled: tuple[str, ...]  # namespace/name
    missing: str = ""  # text of the finding about hosts that are not nodes

    @property
    def ready(self) -> bool:
        """True if there are nodes, every host is a node, and every node is Ready."""
        whole = bool(self.members) and not self.missing
        return whole and all(each.ready for each in self.members)

    def as_dict(self) -> dict[str, Any]:
        return {
            "kubernetes": self.version,
            "ready": self.ready,
            "nodes": [each.as_dict() for each in self.members],
            "pods_not_ready": list(self.troubled),
            "missing": self.missing,
        }

    def table(self) -> str:
        """The text for a terminal of 80 columns."""
        rows = [("NODE", "STATUS", "ROLE", "VERSION", "GPUS USED")]
        rows += [_row(each) for each in self.members]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
        lines += [f"{each.name}: {each.reason}" for each in self.members if not each.ready]
        lines += [f"pod not ready: {name}" for name in self.troubled]
        lines += [self.missing] if self.missing else []
        return "\n".join(lines)


def _row(member: NodeMember) -> tuple[str, str, str, str, str]:
    state = "Ready" if member.ready else "NotReady"
    state += ",cordoned" if member.cordoned else ""
    used = f"{member.used} of {member.gpus}" if member.gpus else "none"
    return member.name, state, member.part, member.version, used


def read_cluster(targets: Sequence[ListedHost]) -> View:
    """Read nodes and pods of the hosts' cluster. Raises Unknown."""
    version, nodes, pods = _asked(kubeconfig_of(targets))
    hosts = {
        target.name: str(target.data.get("ssh_hostname") or "").lower()
        for target in targets
        if not target.is_cluster and target.data.get("kubernetes_enabled")
    }
    with _readable():
        unknown = unknown_hosts(nodes, hosts)
        troubled = tuple(unready_pods(pods, CLUSTER_NAMESPACES))
        shown = tuple(parse_members(nodes, pods))
    names = ", ".join(unknown) or "some"
    finding = found.NOT_NODES(nodes=len(nodes), hosts=len(hosts), names=names)
    missing = finding.paragraph if len(nodes) < len(hosts) else ""
    return View(version, shown, troubled, missing)


def await_cluster(targets: Sequence[ListedHost], seconds: float) -> View:
    """Read the cluster until every node is Ready, a node is missing (waiting would not add it), or
    the time is over. Raises Unknown."""
    end = time.monotonic() + seconds
    while True:
        try:
            view = read_cluster(targets)
            if view.ready or view.missing or time.monotonic() >= end:
                return view
        except Unknown:
            if time.monotonic() >= end:
                raise
        time.sleep(CLUSTER_POLL_SECONDS)


def not_one_cluster(targets: Sequence[ListedHost]) -> str | None:
    """Why the inventory's cluster is not that of its hosts, or None if it is or is missing."""
    created = kubeconfig_of(targets)
    for target in targets:
        used = str(target.data.get("cluster_kubeconfig") or "")
        if target.is_cluster and (not created or _file(used) != _file(created)):
            return (
                f"cluster_kubeconfig of {target.name} ({used or 'not set'}) must be "
                f"{KUBECONFIG_KEY} of the control plane ({created or 'not set'}): "
                "the GPU stack goes to the new cluster."
            )
    return None


def why_not_destroy(kubeconfig: str, nodes: Mapping[str, frozenset[str]]) -> str:
    """The text of a finding that pods use GPUs, or that this is unknown, or else "". `nodes`: hosts
    that are nodes -> the certificate authorities of their cluster."""
    try:
        _, _, pods = _asked(kubeconfig)
        with _readable():
            names = gpu_pods(pods)
    except Unknown as error:
        reason = f"{error} These hosts are nodes: {', '.join(nodes)}."
        return found.GPU_PODS_UNKNOWN(reason=reason).paragraph if nodes else ""
    ours = authority_digests(_file(kubeconfig).read_text("utf-8", "replace"))
    others = [name for name, own in nodes.items() if own and own.isdisjoint(ours)]
    if others:
        reason = f"{kubeconfig} does not trust the authority of the cluster of {', '.join(others)}."
        return found.GPU_PODS_UNKNOWN(reason=reason).paragraph
    if not names:
        return ""
    return found.GPU_PODS_RUN(count=len(names), names=list_names(names)).paragraph


def _asked(kubeconfig: str) -> tuple[str, list[Any], list[Any]]:
    """Version, nodes and pods of the cluster. Raises Unknown."""
    if not kubeconfig:
        missing = found.NO_KUBECONFIG(key=KUBECONFIG_KEY)
        raise Unknown(missing.message, missing)
    try:
        api = ClusterApi(KubeAccess(str(expand_user_path(kubeconfig))))
        version = str(api.get("/version").get("gitVersion") or "")
        return version, api.list("/api/v1/nodes"), api.list("/api/v1/pods")
    except Stopped as error:
        reason = " ".join(f"{each.code} {each.message}" for each in error.findings)
        raise Unknown(reason, *error.findings) from error


@contextmanager
def _readable() -> Iterator[None]:
    """Treat an answer in an unexpected form as no answer. Raises Unknown."""
    try:
        yield
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError) as error:
        raise Unknown(f"the API sent an unexpected response: {type(error).__name__}") from error


def _file(path: str) -> Path:
    return expand_user_path(path).absolute()
