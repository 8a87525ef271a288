"""The container runtimes: up, their configuration valid, ours and the user's in it, in force."""

from __future__ import annotations

import re
import shlex

import pytest

from gpufleet.core.names import count_noun
from gpufleet.verify.findings import runtimes as kinds
from gpufleet.verify.findings.hosts import SERVICE_CHECK
from gpufleet.verify.node import CheckedNode
from gpufleet.verify.parse import has_key, split_dotted_key
from gpufleet.verify.probe import COMMAND_MISSING
from gpufleet.verify.runtimes import RUNTIME_NAMES, CheckedRuntime

REFUSED = re.compile(
    r"^accept-nvidia-visible-devices-envvar-when-unprivileged\s*=\s*false", re.MULTILINE
)
runtimes = pytest.mark.parametrize("name", RUNTIME_NAMES)


def need_up(node: CheckedNode, name: str) -> CheckedRuntime:
    """Skip unless the runtime is managed and running."""
    runtime = node.runtime(name)
    node.need(runtime.active == "active", f"{name} is not running (GF750)")
    return runtime


def need_valid(node: CheckedNode, name: str) -> CheckedRuntime:
    """Skip unless the runtime is managed and takes its configuration."""
    runtime = node.runtime(name)
    node.need(not runtime.refusal, f"{name} rejects its configuration (GF771)")
    return runtime


@runtimes
def test_runtime_up(node: CheckedNode, name: str) -> None:
    """The runtime's unit is active."""
    runtime = node.runtime(name)
    right = runtime.active == "active"
    expected, unit = f"{runtime.unit} active", runtime.unit
    node.expect(right, SERVICE_CHECK, expected, runtime.active, unit=unit)


@runtimes
def test_runtime_valid(node: CheckedNode, name: str) -> None:
    """The runtime's own parser accepts the configuration file."""
    runtime = node.runtime(name)
    node.need(runtime.active != "not installed", f"{name} is not installed (GF750)")
    refusal, path = runtime.refusal, runtime.path
    expected = f"{name} to accept {path}"
    node.expect(not refusal, kinds.RUNTIME_VALID, expected, refusal, path=path)


@runtimes
def test_runtime_ours(node: CheckedNode, name: str) -> None:
    """The configuration has the nvidia runtime, its binary exists, and it is default if wanted."""
    runtime = need_valid(node, name)
    binary = runtime.nvidia_binary
    expected = f"a runtime called nvidia in {runtime.path}"
    if not binary:
        node.fail(kinds.RUNTIME_OURS, expected, "none")
    there = node.probe.run(f"command -v {shlex.quote(binary)}").ok
    expected = f"the binary of the nvidia runtime, {binary}"
    node.expect(there, kinds.RUNTIME_OURS, expected, "no such program")
    if runtime.record.get("default") or node.data.get("toolkit_default_runtime"):
        right = runtime.default == "nvidia"
        node.expect(right, kinds.RUNTIME_OURS, "nvidia as the default runtime", runtime.default)


@runtimes
def test_runtime_user_keys(node: CheckedNode, name: str) -> None:
    """The user's settings are still in the configuration."""
    runtime = need_valid(node, name)
    keys = [str(key) for key in runtime.record.get("user_keys") or []]
    node.need(keys, f"the configuration of {name} had no user keys")
    lost = [key for key in keys if not has_key(runtime.configuration, split_dotted_key(key))]
    expected = f"{count_noun(len(keys), 'user key')} in {runtime.path}"
    found = f"missing: {', '.join(lost)}"
    node.expect(not lost, kinds.RUNTIME_USER_KEYS, expected, found, path=runtime.path)


@runtimes
def test_runtime_knows(node: CheckedNode, name: str) -> None:
    """The running daemon has the nvidia runtime: it was restarted since the change."""
    runtime = need_up(node, name)
    node.need(not runtime.refusal, f"{name} rejects its configuration (GF771)")
    node.need(runtime.nvidia_binary, "the configuration has no nvidia runtime (GF772)")
    why = runtime.ignorance
    expected = f"the running {name} to have the nvidia runtime"
    node.expect(not why, kinds.RUNTIME_KNOWS, expected, why, unit=runtime.unit)


def test_runtime_cri(node: CheckedNode) -> None:
    """containerd has loaded its CRI plugin: kubelets can use it."""
    runtime = need_up(node, "containerd")
    node.need(not runtime.cri_disabled, "the CRI plugin is disabled: no kubelet uses containerd")
    answer = runtime.section("containerd-plugins")
    node.need(answer.ok, f"containerd's plugins cannot be listed: {answer.last}")
    faults, unit, path = runtime.cri_faults, runtime.unit, runtime.path
    expected, found = "the CRI plugin to be loaded", ", ".join(faults)
    node.expect(not faults, kinds.RUNTIME_CRI, expected, found, unit=unit, path=path)


@runtimes
def test_runtime_base(node: CheckedNode, name: str) -> None:
    """The nvidia runtime finds the programs that it calls: runc or crun, and CRI-O's monitor."""
    runtime = need_up(node, name)
    node.need(runtime.unit == f"{name}.service", f"{runtime.unit} has its own runc")
    answer = node.section("low-level-runtime")
    expected = "`nvidia-container-runtime --version` to succeed"
    node.expect(answer.ok, kinds.RUNTIME_BASE, expected, answer.last)
    if name == "crio" and runtime.nvidia_binary:
        monitor = runtime.monitor
        there = node.probe.run(f"command -v {shlex.quote(monitor)}").ok
        expected = f"the monitor of the nvidia runtime, {monitor}"
        node.expect(there, kinds.RUNTIME_BASE, expected, "no such program")


def image_to_run(node: CheckedNode, runtime: CheckedRuntime) -> str:
    """`verify_image` of the inventory, if the host has it; "": one made of the host's own files."""
    wanted = str(node.data.get("verify_image") or "")
    there = not wanted or wanted in runtime.images
    node.need(there, f"{runtime.name} has no image {wanted} (verify_image) on the host")
    return wanted


@pytest.mark.parametrize("name", ["docker", "containerd"])
def test_container_sees_gpus(node: CheckedNode, name: str) -> None:
    """A container that requests all GPUs gets their device nodes."""
    runtime = need_up(node, name)
    image = image_to_run(node, runtime)
    node.need_loaded()
    refused = REFUSED.search(node.section("toolkit-config").text)
    node.need(not refused, "the toolkit's configuration refuses unprivileged containers")
    done = node.probe.script("container.sh", name, image).get("container", COMMAND_MISSING)
    nodes = [w for w in done.text.split() if w.startswith("nvidia") and w[6:].isdigit()]
    source = image or "the host's own `ls`"
    expected = f"{count_noun(len(node.gpus), 'GPU')} in a container of {source}"
    found = f"{len(nodes)}" if done.ok else f"exit status {done.status}: {done.last}"
    node.expect(
        done.ok and len(nodes) >= len(node.gpus), kinds.CONTAINER_SEES_GPUS, expected, found
    )
