"""The steps of the roles, by name and in order: none is left out of a run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pyinfra.api import Config, Inventory, State
from pyinfra.api.connect import connect_all
from pyinfra.api.deploy import add_deploy

from gpufleet.facts.model import ManagedFile, NodeFacts, Runtime
from gpufleet.node.operations import node as of_node
from gpufleet.node.operations import removal as of_removal
from gpufleet.node.settings import load_node_settings
from gpufleet.node.unfinished import NOTHING_LEFT
from gpufleet.roles.node import install_roles
from gpufleet.roles.removal.remove import remove
from gpufleet.run.reporting import RunReport
from tests.unit.hosts import bare_host
from tests.unit.node.removal_plan_setup import host as recorded_host

RUNTIMES = {
    "docker": Runtime("docker", "25.0.0", "docker.service", "/etc/docker/daemon.json", True),
    "containerd": Runtime(
        "containerd", "1.7.27", "containerd.service", "/etc/containerd/config.toml", True
    ),
    "crio": Runtime("crio", "1.36.0", "crio.service", "/etc/crio/crio.conf", True),
}
FILES = {each.config_path: ManagedFile(each.config_path, None) for each in RUNTIMES.values()}


def install() -> None:
    node = of_node.current_node()
    assert node
    install_roles(node)


def take_away() -> None:
    target = of_removal.removal_target()
    assert target
    remove(target)


def steps(
    deploy: Callable[[], None], facts: NodeFacts, monkeypatch: pytest.MonkeyPatch, **data: Any
) -> list[str]:
    """The names of the operations that a deploy has for a host."""
    settings, problems = load_node_settings(data)
    assert settings, problems
    for module in (of_node, of_removal):
        monkeypatch.setattr(module, "settings_and_facts", lambda: (settings, facts))
    monkeypatch.setattr(of_removal, "_left", lambda: NOTHING_LEFT)
    quick = {"fake_delay": 0.0, "fake_delay_jitter": 0.0, **data}
    state = State(Inventory((["@fake/host"], quick), {}), Config())
    state.add_callback_handler(RunReport(state))
    connect_all(state)
    add_deploy(state, deploy)
    assert not state.failed_hosts
    return [" ".join(sorted(state.get_op_meta(one).names)) for one in state.get_op_order()]


def test_a_node_gets_every_role(monkeypatch: pytest.MonkeyPatch) -> None:
    facts = bare_host(runtimes=RUNTIMES, files=FILES)
    wanted = {"exporter_enabled": True, "gpu_power_limit": 300}
    assert steps(install, facts, monkeypatch, **wanted) == [
        "NVIDIA driver | Switch discontinued repositories to their archives",
        "NVIDIA driver | Enable the distribution's components",
        "NVIDIA driver | Trust NVIDIA's driver repository",
        "NVIDIA driver | Resolve and download the driver packages",
        "NVIDIA driver | Blacklist other drivers and pin the driver",
        "NVIDIA driver | Unload the old driver's modules",
        "NVIDIA driver | Install the driver packages",
        "NVIDIA driver | Hold the driver packages",
        "NVIDIA driver | Check that the module is built for the running kernel",
        "NVIDIA driver | Rebuild the initramfs with the blacklist",
        "NVIDIA driver | Load the NVIDIA modules",
        "NVIDIA driver | Reboot if required",
        "NVIDIA driver | Start the persistence daemon and the fabric manager",
        "NVIDIA driver | Compare the versions of packages, module and library",
        "NVIDIA driver | Record what was installed",
        "GPUs | Write the wanted layout",
        "GPUs | Divide and limit the GPUs",
        "GPUs | Reboot if required",
        "GPUs | Check the GPUs after the reboot",
        "GPUs | Record the layout",
        "Container toolkit | Switch discontinued repositories to their archives",
        "Container toolkit | Trust the toolkit's repository",
        "Container toolkit | Resolve and download the toolkit packages",
        "Container toolkit | Install the toolkit packages",
        "Container toolkit | Hold the toolkit packages",
        "Container toolkit | Configure docker",
        "Container toolkit | Configure containerd",
        "Container toolkit | Configure CRI-O",
        "Container toolkit | Configure k3s",
        "Container toolkit | Configure RKE2",
        "Container toolkit | Generate the CDI specification",
        "Container toolkit | Record what was installed",
        "Exporter | Pull the exporter's image",
        "Exporter | Configure the exporter",
        "Exporter | Resolve and download DCGM",
        "Exporter | Install DCGM",
        "Exporter | Resolve and download dcgm-exporter",
        "Exporter | Install dcgm-exporter",
        "Exporter | Hold the packages",
        "Exporter | Stop the previous exporter",
        "Exporter | Start the exporter and check its metrics",
        "Exporter | Record what was installed",
    ]


@pytest.mark.parametrize(
    ("unit", "step"),
    [
        ("k3s", "Configure k3s"),
        ("k3s-agent", "Configure k3s"),
        ("rke2-server", "Configure RKE2"),
        ("rke2-agent", "Configure RKE2"),
    ],
)
def test_k3s_and_rke2_are_restarted_beside_a_containerd(
    unit: str, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """docker's containerd is on such hosts (NVIDIA/nvidia-container-toolkit#982)."""
    path = f"/var/lib/rancher/{unit.split('-')[0]}/agent/etc/containerd/config.toml"
    own = Runtime("containerd", "2.1.4", f"{unit}.service", path, True)
    taken: dict[str, str] = {}

    def note(name: str, facts: NodeFacts, wanted: Any) -> None:
        plan = wanted() if callable(wanted) else wanted
        taken[name] = f"{plan.activation} {plan.unit}" if plan else ""

    monkeypatch.setattr("gpufleet.toolkit.operations.configure_runtime", note)
    facts = bare_host(runtimes={**RUNTIMES, unit: own}, files=FILES)
    steps(install, facts, monkeypatch)
    assert taken[step] == f"restart {unit}.service"
    assert taken["Configure containerd"] == "restart containerd.service"


@pytest.mark.parametrize(
    ("deploy", "facts"), [(install, bare_host()), (take_away, recorded_host())]
)
def test_other_runs_are_kept_out_of_a_host_that_changes(
    deploy: Callable[[], None], facts: NodeFacts, monkeypatch: pytest.MonkeyPatch
) -> None:
    armed: list[str] = []
    monkeypatch.setattr("gpufleet.host.lock.arm_lock", lambda host, facts: armed.append(host.name))
    steps(deploy, facts, monkeypatch)
    assert armed == ["@fake/host"]


def test_a_removal_takes_every_role_away(monkeypatch: pytest.MonkeyPatch) -> None:
    assert steps(take_away, recorded_host(), monkeypatch) == [
        "Removal | Wait for the package manager",
        "Removal | Check that containerd runs no containers",
        "Removal | Return the GPUs to whole GPUs with default limits",
        "Removal | Unload the NVIDIA modules",
        "Removal | Stop the exporter",
        "Removal | Remove the runtime nvidia from docker",
        "Removal | Restore containerd's packaged configuration",
        "Removal | Remove the device files and the CDI spec",
        "Removal | Remove the packages that were installed",
        "Removal | Remove the files that were written",
        "Removal | Rebuild the initramfs without the blacklist",
        "Removal | Remove the record",
    ]
