"""A kubeadm cluster of sandbox hosts: real kubelets, containerd, network, kube-proxy, CoreDNS."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

from gpufleet.core.paths import shipped_path
from gpufleet.core.python import python_code
from gpufleet_sandbox.cluster.versions import versions
from gpufleet_sandbox.errors import SandboxError, kinds
from gpufleet_sandbox.gpus import Gpus, of_node, parse_list
from gpufleet_sandbox.kubernetes.build import build, plugin_image
from gpufleet_sandbox.paths import cache_dir
from gpufleet_sandbox.sandbox import Sandbox, copy_name
from gpufleet_sandbox.stack import build_stack

KINDS = ("ubuntu2404", "debian12")  # H100 and L40S, in turn, unless --gpus says otherwise
COMMAND = "from gpufleet.cli import main; main(prog_name='gpufleet')"
MONITORING = "GPUFLEET_MONITORING"
PLUGIN = Path(__file__).with_name("plugin.yaml")


def up(
    box: Sandbox, minor: str, nodes: int, progress: Callable[[str], None], gpus: str = ""
) -> int:
    """Start hosts and make them a cluster with `gpufleet cluster create`; returns its exit status.

    The first host is the control plane. The first call for a minor builds its programs. `gpus`: of
    the first node, of the second, as h100:8,a100:4. Without GPUFLEET_CHARTS the device plugin comes
    from a manifest. ValueError for unusable `gpus`; SandboxError as of Sandbox.up, GF653 if the
    hosts are a cluster of another release, GF654 if a program cannot be built.
    """
    release = versions().kubernetes.release(minor)
    gpus_of = placed(nodes, gpus)
    if box.is_up and box.state.kubernetes not in ("", release):
        found = box.state.kubernetes
        raise SandboxError(kinds.OTHER_KUBERNETES(name=box.name, found=found, wanted=release))
    prepare(minor, progress)
    for number, kind in enumerate(KINDS):
        if copies := len(range(number, nodes, len(KINDS))):
            box.up([kind], copies=copies, gpus=gpus_of)
    mark(box, minor)
    words = [*python_code(COMMAND), "cluster", "create", str(inventory()), "--yes"]
    environment = {**os.environ, "GPUFLEET_SANDBOX": box.name}
    status = subprocess.run(words, env=environment, check=False).returncode
    if status == 0 and "GPUFLEET_CHARTS" not in os.environ:
        install_plugin(box)
        progress("installed the device plugin")
    return status


def placed(nodes: int, text: str) -> dict[str, Gpus]:
    """Host -> its GPUs, in the order of the nodes; {} where each has those of its kind. Pure."""
    if not text:
        return {}
    listed = parse_list(text)
    if len(listed) > nodes:
        raise ValueError(f"{text!r} has GPUs of {len(listed)} nodes, and there are {nodes}")
    kinds_in_turn = (copy_name(KINDS[n % len(KINDS)], n // len(KINDS)) for n in range(nodes))
    return {name: of_node(listed, number) for number, name in enumerate(kinds_in_turn)}


def prepare(minor: str, progress: Callable[[str], None]) -> None:
    """Write packages and images of a minor for the mirror; builds its programs on first use.

    With GPUFLEET_MONITORING=1 also the images of the GPU stack.
    """
    build(cache_dir(), versions().kubernetes.release(minor), progress)
    if os.environ.get(MONITORING) == "1":
        build_stack(cache_dir(), progress)


def mark(box: Sandbox, minor: str) -> None:
    """Note which release the hosts are, or will be, a cluster of: their inventory reads it."""
    state = box.state
    state.kubernetes = versions().kubernetes.release(minor)
    state.save()


def install_plugin(box: Sandbox) -> None:
    """Apply the device plugin's manifest on the control plane."""
    manifest = PLUGIN.read_text().replace("IMAGE", plugin_image())
    kubectl = "kubectl --kubeconfig /etc/kubernetes/admin.conf apply -f -"
    box.host(KINDS[0]).run(kubectl, stdin=manifest)


def inventory() -> Path:
    """The example inventory of such a cluster."""
    return shipped_path("inventories") / "sandbox_cluster.py"
