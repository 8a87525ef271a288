"""A kubeadm cluster of sandbox hosts: real kubelets, containerd, network, kube-proxy, CoreDNS."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

from gpufleet.core.paths import shipped
from gpufleet.core.python import python_code
from gpufleet_sandbox.cluster.versions import versions
from gpufleet_sandbox.kubernetes.build import build, plugin_image
from gpufleet_sandbox.paths import cache_dir
from gpufleet_sandbox.sandbox import Sandbox

KINDS = ("ubuntu2404", "debian12")  # H100 and L40S, in turn
COMMAND = "from gpufleet.cli import main; main(prog_name='gpufleet')"
PLUGIN = Path(__file__).with_name("plugin.yaml")


def up(box: Sandbox, minor: str, nodes: int, progress: Callable[[str], None]) -> int:
    """Start hosts and make them a cluster with `gpufleet cluster create`; returns its exit status.

    The first host is the control plane. The first call for a minor builds its programs. Without
    GPUFLEET_CHARTS the device plugin comes from a manifest. SandboxError as of Sandbox.up, or GF654
    if a program cannot be built.
    """
    prepare(minor, progress)
    for number, kind in enumerate(KINDS):
        if copies := len(range(number, nodes, len(KINDS))):
            box.up([kind], copies=copies)
    words = [*python_code(COMMAND), "cluster", "create", str(inventory()), "--yes"]
    environment = {**os.environ, "GPUFLEET_SANDBOX": box.name}
    status = subprocess.run(words, env=environment, check=False).returncode
    if status == 0 and "GPUFLEET_CHARTS" not in os.environ:
        install_plugin(box)
        progress("installed the device plugin")
    return status


def prepare(minor: str, progress: Callable[[str], None]) -> None:
    """Write packages and images of a minor for the mirror; builds its programs on first use."""
    build(cache_dir(), versions().kubernetes.releases[minor], progress)


def install_plugin(box: Sandbox) -> None:
    """Apply the device plugin's manifest on the control plane."""
    manifest = PLUGIN.read_text().replace("IMAGE", plugin_image())
    kubectl = "kubectl --kubeconfig /etc/kubernetes/admin.conf apply -f -"
    box.host(KINDS[0]).run(kubectl, stdin=manifest)


def inventory() -> Path:
    """The example inventory of such a cluster."""
    return shipped("inventories") / "sandbox_cluster.py"
