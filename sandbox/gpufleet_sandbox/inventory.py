"""The sandbox as an inventory: what inventories/sandbox.py is made of."""

from __future__ import annotations

from typing import Any

from gpufleet_sandbox.kinds import KINDS, MIRROR
from gpufleet_sandbox.paths import cache_dir
from gpufleet_sandbox.state import HostState, load_state


def nodes(sandbox: str) -> list[tuple[str, dict[str, Any]]]:
    """(name, data) of every GPU node of a sandbox; SandboxError GF603 when it is not up."""
    hosts = load_state(sandbox).hosts.values()
    return [(host.name, _data(host)) for host in hosts if host.kind != MIRROR]


def _data(host: HostState) -> dict[str, Any]:
    """How to reach the host, and the driver branch that goes with its kind."""
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
    """Where the mirror serves what NVIDIA serves elsewhere, and the key that signs it."""
    data: dict[str, Any] = {
        "driver_repo_url": f"http://{MIRROR}/compute/cuda/repos",
        "toolkit_repo_url": f"http://{MIRROR}/libnvidia-container",
    }
    fingerprint = cache_dir() / "mirror" / "fingerprint"
    if fingerprint.exists():
        key = fingerprint.read_text().strip()
        data |= {"driver_repo_key_fingerprint": key, "toolkit_repo_key_fingerprint": key}
    return data
