"""The sandbox as an inventory: data of inventories/sandbox.py."""

from __future__ import annotations

from typing import Any

from gpufleet_sandbox.kinds import KINDS, MIRROR
from gpufleet_sandbox.paths import cache_dir
from gpufleet_sandbox.state import HostState, load_state


def nodes(sandbox: str) -> list[tuple[str, dict[str, Any]]]:
    """(name, data) of every GPU node of a sandbox; SandboxError GF603 if it is not up."""
    hosts = load_state(sandbox).hosts.values()
    return [(host.name, _data(host)) for host in hosts if host.kind != MIRROR]


def _data(host: HostState) -> dict[str, Any]:
    """Connection data of the host, and the driver branch of its kind."""
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
    """URLs of the mirror's copies of NVIDIA's repositories, and their signing key."""
    data: dict[str, Any] = {
        "driver_repo_url": f"http://{MIRROR}/compute/cuda/repos",
        "toolkit_repo_url": f"http://{MIRROR}/libnvidia-container",
    }
    fingerprint = cache_dir() / "mirror" / "fingerprint"
    if fingerprint.exists():
        key = fingerprint.read_text().strip()
        data |= {"driver_repo_key_fingerprint": key, "toolkit_repo_key_fingerprint": key}
    return data
