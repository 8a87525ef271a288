"""A kubeadm cluster of sandbox hosts: real kubelets, containerd, network, kube-proxy, CoreDNS."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

from gpufleet.core.paths import shipped
from gpufleet.core.python import python_code
from gpufleet_sandbox.cluster.versions import versions
from gpufleet_sandbox.kubernetes.build import build
from gpufleet_sandbox.paths import cache_dir
from gpufleet_sandbox.sandbox import Sandbox

KIND = "ubuntu2404"
COMMAND = "from gpufleet.cli import main; main(prog_name='gpufleet')"


def up(box: Sandbox, minor: str, nodes: int, progress: Callable[[str], None]) -> int:
    """Start hosts and make them a cluster with `gpufleet cluster create`; returns its exit status.

    The first host is the control plane. The first call for a minor builds its programs.
    SandboxError as of Sandbox.up, or GF654 if a program cannot be built.
    """
    build(cache_dir(), versions().kubernetes.releases[minor], progress)
    box.up([KIND], copies=nodes)
    words = [*python_code(COMMAND), "cluster", "create", str(inventory()), "--yes"]
    environment = {**os.environ, "GPUFLEET_SANDBOX": box.name}
    return subprocess.run(words, env=environment, check=False).returncode


def inventory() -> Path:
    """The example inventory of such a cluster."""
    return shipped("inventories") / "sandbox_cluster.py"
