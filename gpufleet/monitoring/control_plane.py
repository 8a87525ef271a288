"""Decides which parts of a control plane kube-prometheus-stack can scrape. Pure.

Its Services select pods by labels and scrape them at an address of their node. If a part has no
such pod (managed control planes, k3s), or listens on loopback (kubeadm's default), alerts of the
chart fire for ever.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

from gpufleet.core.entries import Entry, Sourced, entry_loader
from gpufleet.core.findings import Finding
from gpufleet.core.versions import version_tuple
from gpufleet.kube.facts import ClusterFacts
from gpufleet.kube.system_pods import SystemPod
from gpufleet.monitoring import findings

# If one of these values is set, the user decides about the part.
SAID = ("enabled", "endpoints", "service")


class ControlPlanePart(Sourced):
    """One part; control_plane.yaml explains the fields."""

    values: str
    labels: dict[str, str]
    port: int = 0
    since: str = "1.0"
    argument: str = ""
    port_argument: str = ""
    field: str = ""
    default: str = ""
    declared: tuple[int, ...] = ()
    disabled: bool = False


class ControlPlane(Entry):
    """control_plane.yaml"""

    as_of: date
    source: str
    parts: tuple[ControlPlanePart, ...]


load_control_plane = entry_loader(ControlPlane, "monitoring/control_plane")


def control_plane_values(
    facts: ClusterFacts, wanted: Mapping[str, Any]
) -> tuple[dict[str, Any], list[Finding]]:
    """Values that enable the parts which can be scraped and disable the others.

    A finding names running parts that cannot be scraped. `wanted`: the user's values.
    """
    values: dict[str, Any] = {}
    closed: list[str] = []
    for part in load_control_plane().parts:
        own = wanted.get(part.values)
        if isinstance(own, Mapping) and any(key in own for key in SAID):
            continue
        pods = [pod for pod in facts.system_pods if part.labels.items() <= pod.labels.items()]
        old = (facts.server.major, facts.server.minor) < version_tuple(part.since)
        open_ = bool(pods) and not old and all(_can_be_scraped(pod, part) for pod in pods)
        if open_ == part.disabled:
            values[part.values] = {"enabled": open_}
        if pods and not open_ and part.argument and not old:
            closed.append(part.values)
    return values, [findings.NOT_SCRAPABLE(parts=", ".join(closed))] if closed else []


def _can_be_scraped(pod: SystemPod, part: ControlPlanePart) -> bool:
    if part.declared:
        return set(part.declared) <= set(pod.ports)
    said = pod.config.get(part.field) or pod.argument(part.argument) or part.default
    port = pod.argument(part.port_argument) or str(part.port)
    return any(_listens(each, part.port, port) for each in str(said).split(",") if each)


def _listens(address: str, wanted: int, default: str) -> bool:
    """True if other machines reach an address, with or without scheme and port, at that port."""
    text = address.strip()
    if "://" not in text:
        text = f"//[{text}]" if text.count(":") > 1 and "[" not in text else f"//{text}"
    try:
        parts = urlsplit(text)
        port, host = parts.port or default, parts.hostname or ""
    except ValueError:
        return False
    return str(port) == str(wanted) and not _is_loopback(host)


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
