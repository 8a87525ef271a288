"""A cluster of the hosts in a JSON file: what made the machines writes their addresses.

GPUFLEET_HOSTS names the file, for example from `terraform output -json hosts`:

    [{"name": "cp-1", "address": "192.0.2.10", "groups": ["control_plane"]},
     {"name": "gpu-1", "address": "192.0.2.11", "groups": ["gpu_nodes"],
      "data": {"driver_branch": "580"}}]

GPUFLEET_SSH_USER and GPUFLEET_SSH_KEY: how all of them are reached. GPUFLEET_KUBECONFIG: where the
access to the cluster is written.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

_GROUPS = ("control_plane", "gpu_nodes", "cpu_nodes")
_path = os.environ.get("GPUFLEET_HOSTS")
if not _path:
    raise SystemExit("set GPUFLEET_HOSTS to a JSON file of hosts: see inventories/hosts_json.py")
_hosts = json.loads(Path(_path).read_text("utf-8"))
_kubeconfig = os.environ.get("GPUFLEET_KUBECONFIG", "kubeconfig")
_user = os.environ.get("GPUFLEET_SSH_USER", "root")
_all: dict[str, Any] = {
    "ssh_user": _user,
    "_sudo": _user != "root",
    "kubernetes_enabled": True,
    "kubernetes_kubeconfig": _kubeconfig,
    "toolkit_default_runtime": True,  # pods with GPUs need no RuntimeClass
    "node_reboot": "if_needed",
}
if _key := os.environ.get("GPUFLEET_SSH_KEY"):
    _all["ssh_key"] = _key


def _group(name: str) -> tuple[list[tuple[str, dict[str, Any]]], dict[str, Any]]:
    """The hosts of a group, with the settings of all: a copy, to which pyinfra adds group_data."""
    chosen = [host for host in _hosts if name in host["groups"]]
    data = [{"ssh_hostname": host["address"], **host.get("data", {})} for host in chosen]
    return [(host["name"], each) for host, each in zip(chosen, data, strict=True)], {**_all}


for _host in _hosts:
    if _host["name"].startswith(("@", "-")):  # pyinfra's connectors, and options
        raise SystemExit(f"{_host['name']}: not a name of a host")
    if unknown := set(_host["groups"]) - set(_GROUPS):
        raise SystemExit(f"{_host['name']}: unknown group {', '.join(sorted(unknown))}")
control_plane, gpu_nodes, cpu_nodes = (_group(name) for name in _GROUPS)
gpu_cluster = (["@local"], {"cluster_kubeconfig": _kubeconfig})
