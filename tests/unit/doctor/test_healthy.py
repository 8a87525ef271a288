"""Machines that work get PASS, whatever their kind, and however busy they are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from gpufleet.doctor.container_links import CDI_OUTPUT_SETTING, CDI_SERVICE, CDI_SETTINGS
from gpufleet.doctor.models import Verdict
from gpufleet.facts.gpu import Listed
from gpufleet.facts.health import GpuHealth, HostHealth, RuntimeAnswer
from gpufleet.facts.model import GpuProcess, Kernel, NodeFacts, Package
from gpufleet.facts.parse import parse_node_facts
from tests.unit.doctor.machines import (
    CRIO,
    PERSISTENCED,
    SLOT,
    asked_containerd,
    asked_crio,
    divided,
    exported,
    machine,
    on_containerd,
    on_crio,
    on_rancher,
    operated,
    runtime,
    second_gpu,
    service,
    verdict_on,
    with_file,
    with_services,
    without,
)
from tests.unit.hosts import KERNEL, NVSWITCH
from tests.unit.status.fleets import NEWEST, NOW, bare

pytestmark = pytest.mark.claim(
    "`gpufleet doctor` passes healthy hosts of twenty kinds.",
    level=1,
)

CAPTURES = Path(__file__).parents[1] / "facts" / "captures"
RANCHER = "[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.'nvidia']\n"
RANCHER = f"version = 3\n{RANCHER}runtime_type = 'io.containerd.runc.v2'\n"


def precompiled() -> NodeFacts:
    facts = machine(dkms=())
    return replace(facts, kernel=Kernel(KERNEL, "x86_64", headers=False, secure_boot=False))


def signed() -> NodeFacts:
    facts = machine()
    assert facts.module_on_disk
    module = replace(facts.module_on_disk, signer="Canonical Ltd. Secure Boot Signing")
    kernel = replace(facts.kernel, secure_boot=True)
    return replace(facts, module_on_disk=module, kernel=kernel)


def switched() -> NodeFacts:
    facts = machine(pci=(*machine().pci, NVSWITCH))
    facts = with_services(facts, service("nvidia-fabricmanager.service"))
    name = "nvidia-fabricmanager-580"
    package = Package(name, f"{NEWEST}-1", "amd64")
    return replace(facts, packages={**facts.packages, name: package})


def busy() -> NodeFacts:
    work = GpuProcess(4711, "python3", ("/dev/nvidia0",), "python3 train.py")
    return machine(gpu_processes=(work,), gpu_containers=3)


def legacy_persistence() -> NodeFacts:
    facts = with_services(machine(), service(PERSISTENCED, "inactive", "disabled"))
    return replace(facts, health=HostHealth((GpuHealth(SLOT, persistence="Enabled"),), error=""))


def passed_through() -> NodeFacts:
    """One GPU works here, the other one belongs to a virtual machine."""
    facts = second_gpu(machine(), driver="vfio-pci")
    return replace(facts, listed=Listed(1), device_nodes=machine().device_nodes)


def docker_alone() -> NodeFacts:
    facts = with_file(machine(), "/etc/docker/daemon.json", '{"log-driver": "journald"}')
    return replace(without(facts, "nvidia-container", "libnvidia-container"), cdi_specs=())


def cdi_elsewhere() -> NodeFacts:
    """The settings of the toolkit's service name a file in a folder that gpufleet does not read."""
    facts = with_services(machine(cdi_specs=()), service(CDI_SERVICE, "inactive"))
    return with_file(facts, CDI_SETTINGS, f"{CDI_OUTPUT_SETTING}=/srv/cdi/nvidia.yaml\n")


def newer_kernel() -> NodeFacts:
    facts = machine()
    name = "linux-image-5.15.0-999-generic"
    return replace(facts, packages={**facts.packages, name: Package(name, "5.15.0-999.1", "amd64")})


def beside_docker() -> NodeFacts:
    """docker starts a containerd of its own; the unit of containerd is off."""
    facts = with_services(machine(), service("containerd.service", "inactive", "disabled"))
    facts = with_file(facts, "/etc/containerd/config.toml")
    idle = runtime("containerd", "/etc/containerd/config.toml", running=False)
    return replace(facts, runtimes={**facts.runtimes, "containerd": idle})


KINDS: dict[str, Callable[[], NodeFacts]] = {
    "docker": machine,
    "two GPUs": lambda: second_gpu(machine()),
    "kubeadm with containerd": lambda: on_containerd(machine()),
    "kubeadm with CRI-O": lambda: on_crio(machine(), CRIO),
    "k3s": lambda: on_rancher(machine(), "k3s", "k3s-agent.service", RANCHER),
    "RKE2": lambda: on_rancher(machine(), "rke2", "rke2-server.service", RANCHER),
    "GPU Operator": lambda: operated(machine()),
    "no GPU": lambda: bare(pci=()),
    "precompiled modules": precompiled,
    "Secure Boot, signed": signed,
    "NVSwitch": switched,
    "MIG": lambda: machine(listed=Listed(1, mig_devices=7)),
    "MIG as recorded": lambda: divided(machine(), "3g.20gb,1g.5gb", "1g.5gb", "3g.20gb"),
    "MIG off as recorded": lambda: divided(machine(), "off", on=False),
    "busy": busy,
    "persistence by nvidia-smi": legacy_persistence,
    "a GPU of a virtual machine": passed_through,
    "docker without the toolkit": docker_alone,
    "a newer kernel waits": newer_kernel,
    "CDI in a folder of its own": cdi_elsewhere,
    "containerd of docker": beside_docker,
    "nodes are created at the first use": lambda: machine(device_nodes=()),
    "docker says what it has": lambda: machine(
        answers={
            "docker": RuntimeAnswer(answered=True, default="runc", runtimes=("nvidia", "runc"))
        }
    ),
    "containerd without CRI, and without a kubelet": lambda: machine(
        answers={"containerd": RuntimeAnswer(answered=True)}
    ),
    "one cgroup driver": lambda: asked_containerd(machine()),
    "the kubelet follows containerd": lambda: asked_containerd(
        machine(), cgroups="cgroupfs", version="v1.35.0"
    ),
    "a kubelet of unknown version may follow containerd": lambda: asked_containerd(
        machine(), cgroups="cgroupfs", version=""
    ),
    "CRI-O says what it has": lambda: asked_crio(machine(), "crun", "nvidia"),
    "k3s keeps its cgroup drivers": lambda: asked_containerd(
        machine(), cgroups="cgroupfs", endpoint="unix:///run/k3s/containerd/containerd.sock"
    ),
    "exporter answers": lambda: exported(machine(), "GPU-1"),
    "two exporters share the GPUs": lambda: replace(
        exported(machine(), "GPU-1"),
        exporter_answers=(
            *exported(machine(), "GPU-1").exporter_answers,
            *exported(machine(), "GPU-2", port=9401).exporter_answers,
        ),
    ),
    "exporter has just started": lambda: exported(machine(), age=20),
    "exporter asks for a login": lambda: exported(machine(), status=401),
    "log without its start": lambda: machine(
        health=HostHealth((GpuHealth(SLOT),), error="", log_since=NOW - 60, log_complete=False)
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_healthy_machine_passes(kind: str) -> None:
    found = verdict_on(KINDS[kind]())
    causes = [(each.check, each.cause) for each in found.causes]
    assert (found.verdict, causes) == (Verdict.PASS, [])


def test_a_real_machine_passes() -> None:
    lines = (CAPTURES / "ubuntu2404-h200-real.txt").read_text("utf-8").splitlines()
    facts = replace(parse_node_facts(lines), clock=NOW)
    assert verdict_on(facts).verdict is Verdict.PASS
