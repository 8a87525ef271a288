"""Configuration files of k3s: of the node, of registries, of containerd, and its unit. Pure.

Sources: https://docs.k3s.io/cli/server, https://docs.k3s.io/cli/agent,
https://docs.k3s.io/installation/private-registry and
https://github.com/k3s-io/k3s/blob/master/install.sh (read 2026-11-25).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

import yaml

from gpufleet.core.render import render
from gpufleet.host.file_write import FileWrite
from gpufleet.kubernetes.kubeadm import CONTROL_PLANE_TAINT
from gpufleet.kubernetes.models import K3s
from gpufleet.kubernetes.roster import Part
from gpufleet.kubernetes.settings import KubernetesSettings

FOLDER = "/etc/rancher/k3s"
CONFIG = f"{FOLDER}/config.yaml"
REGISTRIES = f"{FOLDER}/registries.yaml"
TOKEN = f"{FOLDER}/token"  # of an agent; expires minutes after it has joined
JOIN = f"{FOLDER}/config.yaml.d/90-gpufleet-join.yaml"  # of an agent: its server
CONTAINERD = "/var/lib/rancher/k3s/agent/etc/containerd"
# https://docs.k3s.io/installation/requirements, local ports (read 2026-11-25)
PORTS: dict[Part, tuple[int, ...]] = {
    "control-plane": (6443, 6444, 10250, 10257, 10259),
    "worker": (6444, 10250),
}
UNITS: dict[Part, str] = {"control-plane": "k3s.service", "worker": "k3s-agent.service"}
SYSTEMD = "/etc/systemd/system"
UNIT_FILES = frozenset(f"{SYSTEMD}/{name}" for name in UNITS.values())


def read_files() -> tuple[str, ...]:
    """What a host's facts must have to compare it with node_files; templates they have anyway."""
    return (CONFIG, REGISTRIES, *sorted(UNIT_FILES))


def node_files(
    settings: KubernetesSettings,
    known: K3s,
    version: str,
    part: Part,
    written: Collection[str] = (),
) -> Iterator[FileWrite]:
    """The files that a node has while it is one. None contains a secret. `written`: by earlier
    runs; one that is not wanted any more stays and says nothing."""
    server = part == "control-plane"
    text = _text(server_config(settings) if server else agent_config(settings, known))
    yield FileWrite(CONFIG, text, 0o600)
    yield FileWrite(f"{SYSTEMD}/{UNITS[part]}", unit(part))
    if settings.registry_mirrors or REGISTRIES in written:
        yield FileWrite(REGISTRIES, registries(settings), 0o600)
    template = f"{CONTAINERD}/{known.template_of(version)}"
    if settings.k3s_containerd is not None or template in written:
        yield FileWrite(template, containerd(settings), 0o600)


def server_config(settings: KubernetesSettings) -> dict[str, Any]:
    """Options of `k3s server`; it makes its own token, which never leaves the host."""
    config: dict[str, Any] = {
        "write-kubeconfig-mode": "0600",
        "cluster-cidr": settings.pod_subnet,
        "service-cidr": settings.service_subnet,
    }
    if settings.endpoint:
        host = settings.endpoint.rpartition(":")[0].strip("[]")
        config["tls-san"] = [host]
    if settings.network == "none":
        config |= {"flannel-backend": "none", "disable-network-policy": True}
    taints = list(settings.taints)
    if not settings.control_plane_pods:
        taints.insert(0, f"{CONTROL_PLANE_TAINT}:NoSchedule")
    return {**config, **_registration(settings, taints), **settings.k3s_config}


# options that are the cluster's -> the setting that they come from
FIXED = {
    "cluster-cidr": "pod_subnet",
    "service-cidr": "service_subnet",
    "flannel-backend": "network",
    "tls-san": "endpoint",
}


def changed_options(before: str, wanted: str) -> Iterator[str]:
    """Options of the cluster that differ between two texts of config.yaml, as this role writes it.
    The first one is from a host: it is compared, and not parsed."""
    old, new = _options(before), _options(wanted)
    yield from (name for name in FIXED if old.get(name) != new.get(name))


def _options(text: str) -> dict[str, str]:
    """Each option with its lines."""
    found: dict[str, str] = {}
    name = ""
    for line in text.splitlines():
        if not line.startswith(("-", " ")):
            name = line.partition(":")[0]
        found[name] = found.get(name, "") + line.strip() + "\n"
    return found


def agent_config(settings: KubernetesSettings, known: K3s) -> dict[str, Any]:
    """Options of `k3s agent`, which ends over one that it does not know: those of the server alone
    are left out. The server's address comes with the token, when it joins."""
    own = _registration(settings, settings.taints)
    given = {
        name: value
        for name, value in settings.k3s_config.items()
        if name.rstrip("+") not in known.server_options
    }
    return {"token-file": TOKEN, **own, **given}


def join_config(endpoint: str) -> str:
    """The file of an agent that names its server."""
    return _text({"server": f"https://{endpoint}"})


def unit(part: Part) -> str:
    """The unit of systemd, as k3s' install.sh writes it, without its files of environment."""
    verb, kind = ("server", "notify") if part == "control-plane" else ("agent", "exec")
    return render("kubernetes/k3s.service", verb=verb, kind=kind)


def registries(settings: KubernetesSettings) -> str:
    """Mirrors of registries. A path in a mirror's URL replaces /v2, as with containerd's
    override_path."""
    mirrors = {name: {"endpoint": [url]} for name, url in sorted(settings.registry_mirrors.items())}
    return _text({"mirrors": mirrors})


def containerd(settings: KubernetesSettings) -> str:
    """The template of containerd's file: k3s' own, then what the user adds."""
    return '{{ template "base" . }}\n\n' + (settings.k3s_containerd or "").strip() + "\n"


def _registration(settings: KubernetesSettings, taints: list[str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if settings.labels:
        found["node-label"] = [f"{name}={value}" for name, value in sorted(settings.labels.items())]
    if taints:
        found["node-taint"] = taints
    return found


def _text(data: dict[str, Any]) -> str:
    return yaml.safe_dump(data, sort_keys=False)
