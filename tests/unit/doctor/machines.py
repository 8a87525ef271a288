"""Machines made of facts: a healthy one, and what changes on it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from gpufleet.doctor.fleet import ReadFleet
from gpufleet.doctor.models import JudgedFleet, SubjectVerdict
from gpufleet.doctor.table import choose_checks
from gpufleet.facts.gpu import LAYOUT_FILE, CdiSpec, GpuState, Listed
from gpufleet.facts.health import (
    ExporterAnswer,
    GpuHealth,
    HostHealth,
    KubeletAnswer,
    RuntimeAnswer,
)
from gpufleet.facts.model import (
    DkmsModule,
    ManagedFile,
    NodeFacts,
    Package,
    PciDevice,
    Runtime,
    Service,
)
from gpufleet.facts.record import EMPTY_RECORD
from gpufleet.status.models import SeenHost
from tests.unit.hosts import A100, KERNEL
from tests.unit.status.fleets import NEWEST, NOW, healthy, seen

TOOLKIT = "1.20.1"
DAEMON = '{"runtimes": {"nvidia": {"args": [], "path": "nvidia-container-runtime"}}}'
SLOT = A100.slot
PERSISTENCED = "nvidia-persistenced.service"
CRI = "plugins.'io.containerd.cri.v1.runtime'.containerd"
CONTAINERD = f"""version = 3
[{CRI}]
default_runtime_name = "runc"
[{CRI}.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
[{CRI}.runtimes.runc.options]
SystemdCgroup = true
[{CRI}.runtimes.nvidia]
runtime_type = "io.containerd.runc.v2"
[{CRI}.runtimes.nvidia.options]
BinaryName = "/usr/bin/nvidia-container-runtime"
SystemdCgroup = true
"""
CRIO = """[crio.runtime.runtimes.nvidia]
runtime_path = "/usr/bin/nvidia-container-runtime"
runtime_type = "oci"
monitor_path = "/usr/libexec/crio/conmon"
"""


def service(name: str, active: str = "active", enabled: str = "enabled") -> Service:
    return Service(name, "loaded", active, enabled)


def runtime(name: Any, config: str, unit: str = "", *, running: bool = True) -> Runtime:
    return Runtime(name, "28.5.1", unit or f"{name}.service", config, running=running)


def with_file(facts: NodeFacts, path: str, text: str | None = None) -> NodeFacts:
    """The facts with a file, or with the absence of one."""
    return replace(facts, files={**facts.files, path: ManagedFile(path, text)})


def without(facts: NodeFacts, *names: str) -> NodeFacts:
    """The facts without the packages whose names begin so."""
    kept = {key: each for key, each in facts.packages.items() if not key.startswith(names)}
    return replace(facts, packages=kept)


def with_services(facts: NodeFacts, *services: Service) -> NodeFacts:
    return replace(facts, services={**facts.services, **{each.name: each for each in services}})


def machine(version: str = NEWEST, **changes: Any) -> NodeFacts:
    """A host with an A100, a driver built by DKMS, docker and the container toolkit."""
    facts = healthy(version)
    packages = {
        name: Package(name, f"{TOOLKIT}-1", "amd64")
        for name in ("nvidia-container-toolkit", "nvidia-container-toolkit-base",
                     "libnvidia-container-tools", "libnvidia-container1")
    }  # fmt: skip
    packages["docker-ce"] = Package("docker-ce", "5:28.5.1-1", "amd64")
    facts = with_services(facts, service("docker.service"))
    facts = replace(
        facts,
        packages={**facts.packages, **packages},
        dkms=(DkmsModule("nvidia", version, KERNEL, "installed"),),
        device_nodes=("/dev/nvidia0", "/dev/nvidiactl", "/dev/nvidia-uvm"),
        listed=Listed(1),
        runtimes={"docker": runtime("docker", "/etc/docker/daemon.json")},
        cdi_specs=(CdiSpec("/var/run/cdi/nvidia.yaml", version),),
        health=HostHealth((GpuHealth(SLOT, model="NVIDIA A100-SXM4-40GB"),), error=""),
    )
    return replace(with_file(facts, "/etc/docker/daemon.json", DAEMON), **changes)


def on_containerd(facts: NodeFacts, text: str = CONTAINERD) -> NodeFacts:
    """The machine as a node of kubeadm with containerd, if it is not a node yet."""
    if facts.kubelet:
        return facts
    facts = without(facts, "docker")
    facts = with_file(facts, "/etc/containerd/config.toml", text)
    facts = replace(facts, services={"nvidia-persistenced.service": service(PERSISTENCED)})
    facts = with_services(facts, service("containerd.service"), service("kubelet.service"))
    containerd = replace(runtime("containerd", "/etc/containerd/config.toml"), version="2.1.5")
    return replace(facts, runtimes={"containerd": containerd}, kubelet=True)


def asked_containerd(
    facts: NodeFacts, own: str = "systemd", nvidia: str = "systemd", **kubelet: str
) -> NodeFacts:
    """The node with the answers of its containerd and its kubelet."""
    answer = RuntimeAnswer(
        answered=True,
        default="runc",
        runtimes=("nvidia", "runc"),
        cri={"io.containerd.cri.v1.runtime": "ok"},
        cgroups={"runc": own, "nvidia": nvidia},
    )
    options = {"version": "v1.29.3", "cgroups": "systemd", **kubelet}
    return replace(
        on_containerd(facts),
        answers={"containerd": answer},
        kubelet_answer=KubeletAnswer(**options),
    )


def asked_crio(facts: NodeFacts, *runtimes: str, cgroups: str = "systemd") -> NodeFacts:
    """The node with the answers of its CRI-O and its kubelet, which has read its file."""
    driver = {"": cgroups}
    answer = RuntimeAnswer(answered=True, default="crun", runtimes=runtimes, cgroups=driver)
    kubelet = KubeletAnswer("v1.27.4", "systemd", "unix:///var/run/crio/crio.sock")
    facts = on_crio(facts, CRIO)
    crio = replace(facts.runtimes["crio"], version="1.27.1")
    return replace(facts, runtimes={"crio": crio}, answers={"crio": answer}, kubelet_answer=kubelet)


def exported(facts: NodeFacts, *uuids: str, **answer: int) -> NodeFacts:
    """The machine with the answer of an exporter. Its GPU has the UUID GPU-1."""
    values = {"age": 4000, "port": 9400, "status": 200, "samples": 20 * len(uuids), **answer}
    gpu = GpuHealth(SLOT, model="NVIDIA A100-SXM4-40GB", uuid="GPU-1")
    answers = (ExporterAnswer(**values, gpus=frozenset(uuids)),)
    return replace(facts, exporter_answers=answers, health=HostHealth((gpu,), error=""))


def on_rancher(facts: NodeFacts, name: str, unit: str, text: str) -> NodeFacts:
    """The machine as a node of k3s or RKE2, which has a containerd of its own."""
    path = f"/var/lib/rancher/{name}/agent/etc/containerd/config.toml"
    facts = with_file(without(facts, "docker"), path, text)
    facts = replace(facts, services={"nvidia-persistenced.service": service(PERSISTENCED)})
    own = replace(runtime("containerd", path, unit), version="2.1.4")
    facts = with_services(facts, service(unit))
    return replace(facts, runtimes={"containerd": own}, kubelet=True)


def on_crio(facts: NodeFacts, text: str) -> NodeFacts:
    """The machine as a node of kubeadm with CRI-O."""
    facts = with_file(without(facts, "docker"), "/etc/crio/crio.conf.d/99-nvidia.conf", text)
    facts = replace(facts, services={"nvidia-persistenced.service": service(PERSISTENCED)})
    facts = with_file(facts, "/etc/crio/crio.conf")
    facts = with_services(facts, service("crio.service"), service("kubelet.service"))
    crio = replace(runtime("crio", "/etc/crio/crio.conf"), version="1.33.1")
    return replace(facts, runtimes={"crio": crio}, kubelet=True)


def divided(facts: NodeFacts, recorded: str, *devices: str, on: bool = True) -> NodeFacts:
    """The machine with a recorded MIG layout, and the devices and MIG mode of its GPU."""
    state = GpuState(SLOT, on, on, devices)
    listed = Listed(1, mig_devices=len(devices), states=(state,))
    return replace(with_file(facts, LAYOUT_FILE, f"# layouts\n{SLOT} mig={recorded} power=300\n"),
                   listed=listed)  # fmt: skip


def operated(facts: NodeFacts) -> NodeFacts:
    """The machine with driver and toolkit in containers of the GPU Operator."""
    program = "/usr/local/nvidia/toolkit/nvidia-container-runtime"
    facts = on_containerd(facts, CONTAINERD.replace("/usr/bin/nvidia-container-runtime", program))
    facts = without(facts, "nvidia", "libnvidia", "cuda")
    facts = replace(
        facts, operator_driver=True, module_on_disk=None, library=None, dkms=(), listed=None,
        cdi_specs=(), device_nodes=(), provenance=EMPTY_RECORD, holds=frozenset(),
    )  # fmt: skip
    services = {k: v for k, v in facts.services.items() if not k.startswith("nvidia")}
    return replace(facts, services=services)


def judged(*hosts: SeenHost, **clusters: Any) -> JudgedFleet:
    return ReadFleet("prod.py", hosts, clusters).judge(choose_checks((), ()), NOW)


def verdict_on(facts: NodeFacts, **data: Any) -> SubjectVerdict:
    """The verdict on one host with these facts."""
    wanted = {"toolkit_enabled": True, **data}
    return judged(seen("gpu-07", facts, **wanted)).hosts[0]


def second_gpu(facts: NodeFacts, **changes: Any) -> NodeFacts:
    """The machine with another GPU."""
    other = replace(A100, slot="0000:65:00.0", driver="nvidia")
    gpu: PciDevice = replace(other, **changes)
    return replace(
        facts,
        pci=(*facts.pci, gpu),
        listed=Listed(2),
        device_nodes=(*facts.device_nodes, "/dev/nvidia1"),
    )
