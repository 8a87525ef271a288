"""Faults of the software chain, each as a change of a machine, with the check that names it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from gpufleet.doctor.container_links import CDI_SERVICE
from gpufleet.facts.gpu import CdiSpec, Listed
from gpufleet.facts.health import RuntimeAnswer
from gpufleet.facts.model import DkmsModule, NodeFacts, Package
from tests.unit.doctor.machines import (
    CONTAINERD,
    CRI,
    CRIO,
    PERSISTENCED,
    asked_containerd,
    asked_crio,
    divided,
    exported,
    on_containerd,
    on_crio,
    on_rancher,
    operated,
    second_gpu,
    service,
    with_file,
    with_services,
    without,
)
from tests.unit.hosts import NVSWITCH, record_of
from tests.unit.status.fleets import NEWEST

Change = Callable[[NodeFacts], NodeFacts]
OLDER = "580.159.03"
CRI_PLUGIN = "io.containerd.grpc.v1.cri"
K3S = "version = 3\n[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]\n"
NO_DEVICES = Listed(0, error="No devices were found")
RTX_5090, P100 = 0x2B85, 0x15F8
SMI_FAILS = Listed(0, error="Failed to initialize NVML: Unknown Error")


def unloaded(facts: NodeFacts) -> NodeFacts:
    """The module is there and not loaded, so nothing is bound, and nvidia-smi is not asked."""
    pci = tuple(replace(gpu, driver=None) if gpu.driver == "nvidia" else gpu for gpu in facts.pci)
    return replace(facts, modules={}, pci=pci, listed=None, device_nodes=())


def unbuilt(facts: NodeFacts) -> NodeFacts:
    """DKMS has the source, and no module for the kernel."""
    facts = unloaded(facts)
    return replace(facts, module_on_disk=None, dkms=(DkmsModule("nvidia", NEWEST, "", "added"),))


def headless(facts: NodeFacts) -> NodeFacts:
    facts = unbuilt(facts)
    return replace(facts, kernel=replace(facts.kernel, headers=False))


def precompiled_for_another_kernel(facts: NodeFacts) -> NodeFacts:
    return replace(unbuilt(facts), dkms=())


def removed_from_dkms(facts: NodeFacts) -> NodeFacts:
    """`dkms remove` on a host without headers; the packages are there."""
    return replace(headless(facts), dkms=())


def unsigned(facts: NodeFacts) -> NodeFacts:
    facts = unloaded(facts)
    return replace(facts, kernel=replace(facts.kernel, secure_boot=True))


def taken_by(rival: str) -> Change:
    def change(facts: NodeFacts) -> NodeFacts:
        facts = unloaded(facts)
        pci = tuple(replace(gpu, driver=rival) for gpu in facts.pci)
        return replace(facts, pci=pci, modules={rival: None})

    return change


def no_driver(facts: NodeFacts) -> NodeFacts:
    facts = unbuilt(without(facts, "nvidia-driver", "libnvidia-c", "nvidia-dkms", "nvidia-kernel"))
    return replace(facts, library=None, dkms=(), cdi_specs=(), provenance=record_of())


def newer_library(facts: NodeFacts) -> NodeFacts:
    return replace(facts, modules={"nvidia": OLDER}, listed=SMI_FAILS)


def newer_library_alone(facts: NodeFacts) -> NodeFacts:
    module = replace(facts.module_on_disk, version=OLDER) if facts.module_on_disk else None
    return replace(facts, modules={"nvidia": OLDER}, module_on_disk=module, listed=SMI_FAILS)


def unbound(facts: NodeFacts) -> NodeFacts:
    return replace(facts, pci=tuple(replace(gpu, driver=None) for gpu in facts.pci))


def unfit(device: int, license_: str, driver: str | None = "nvidia") -> Change:
    """Another GPU, with modules of a flavor that cannot run it."""

    def change(facts: NodeFacts) -> NodeFacts:
        assert facts.module_on_disk
        module = replace(facts.module_on_disk, license=license_)
        pci = tuple(replace(gpu, device=device, driver=driver) for gpu in facts.pci)
        return replace(
            facts, pci=pci, module_on_disk=module, loaded_flavour=module.flavour, listed=NO_DEVICES
        )

    return change


def lost(facts: NodeFacts) -> NodeFacts:
    slots = tuple(gpu.slot for gpu in facts.gpus)
    return replace(facts, pci=facts.pci[:-1], taken=slots, listed=Listed(len(slots) - 1))


def silent(facts: NodeFacts) -> NodeFacts:
    return replace(facts, pci=tuple(replace(gpu, answers=False) for gpu in facts.pci))


def switched(facts: NodeFacts, *, active: str = "active", version: str = NEWEST) -> NodeFacts:
    facts = with_services(facts, service("nvidia-fabricmanager.service", active))
    manager = Package("nvidia-fabricmanager-580", f"{version}-1", "amd64")
    packages = {**facts.packages, manager.name: manager}
    return replace(facts, pci=(*facts.pci, NVSWITCH), packages=packages)


def down(name: str, active: str = "failed") -> Change:
    return lambda facts: with_services(facts, service(name, active))


def daemon_json(text: str) -> Change:
    return lambda facts: with_file(facts, "/etc/docker/daemon.json", text)


def dockerd_options(facts: NodeFacts) -> NodeFacts:
    command = "/usr/bin/dockerd --log-driver syslog"
    unit = replace(facts.services["docker.service"], exec_start=command)
    facts = daemon_json('{"log-driver": "journald"}')(facts)
    return with_services(facts, unit)


def stale_cdi(facts: NodeFacts) -> NodeFacts:
    return replace(facts, cdi_specs=(CdiSpec("/var/run/cdi/nvidia.yaml", OLDER),))


def two_cdi(facts: NodeFacts) -> NodeFacts:
    return replace(facts, cdi_specs=(*facts.cdi_specs, CdiSpec("/etc/cdi/nvidia.yaml", OLDER)))


def no_cdi(facts: NodeFacts) -> NodeFacts:
    return with_services(replace(facts, cdi_specs=()), service(CDI_SERVICE, "inactive"))


def no_toolkit(facts: NodeFacts) -> NodeFacts:
    return replace(without(facts, "nvidia-container", "libnvidia-container"), cdi_specs=())


def containerd(text: str) -> Change:
    return lambda facts: on_containerd(facts, text)


def answering(**answers: RuntimeAnswer) -> Change:
    return lambda facts: replace(facts, answers=answers)


def old_containerd(facts: NodeFacts) -> NodeFacts:
    old = replace(facts.runtimes["containerd"], version="1.7.28")
    return replace(with_version_2(facts), runtimes={"containerd": old})


def with_version_2(facts: NodeFacts) -> NodeFacts:
    """The file of containerd as 1.x reads it."""
    text = facts.texts["/etc/containerd/config.toml"].replace("version = 3", "version = 2")
    text = text.replace("io.containerd.cri.v1.runtime", "io.containerd.grpc.v1.cri")
    return with_file(facts, "/etc/containerd/config.toml", text)


def two_read_gpus(facts: NodeFacts) -> NodeFacts:
    assert facts.health
    (gpu,) = facts.health.gpus
    other = replace(gpu, slot="0000:65:00.0", uuid="GPU-2")
    return replace(second_gpu(facts), health=replace(facts.health, gpus=(gpu, other)))


def damaged_record(facts: NodeFacts) -> NodeFacts:
    return replace(facts, provenance=record_of(driver={"version": 580}))


def without_containerd(facts: NodeFacts) -> NodeFacts:
    """The node, whose containerd is masked."""
    facts = with_services(facts, service("containerd.service", "inactive", "masked"))
    idle = replace(facts.runtimes["containerd"], running=False)
    return replace(facts, runtimes={**facts.runtimes, "containerd": idle}, answers={})


def beside_docker(facts: NodeFacts) -> NodeFacts:
    """The node with a docker that runs and that its kubelet does not use."""
    own = {"docker": facts.runtimes["docker"]}
    facts = asked_containerd(facts)
    return without_containerd(replace(facts, runtimes={**own, **facts.runtimes}))


NO_NVIDIA = CONTAINERD.split(f"[{CRI}.runtimes.nvidia]")[0]
OTHER_CGROUPS = CONTAINERD[: CONTAINERD.rindex("SystemdCgroup")] + "SystemdCgroup = false\n"
UNDEFINED = CONTAINERD.replace('default_runtime_name = "runc"', 'default_runtime_name = "kata"')

# fault -> the change, the check that names it, the checks that fail because of it
FAULTS: dict[str, tuple[Change, str, tuple[str, ...]]] = {
    "not root": (lambda f: replace(f, privileged=False), "host.answers", ()),
    "packages half installed": (
        lambda f: replace(f, broken="man-db is half-configured"), "host.packages", ()
    ),
    "disk is full": (lambda f: replace(f, free_bytes={"/": 10**9, "/var": 0}), "host.disk", ()),
    "clock is wrong": (lambda f: replace(f, clock=f.clock - 4000), "host.clock", ()),
    "damaged record": (damaged_record, "host.plan", ()),
    "GPU fell off the bus": (lambda f: lost(second_gpu(f)), "chain.gpus", ()),
    "the only GPU fell off the bus": (lost, "chain.gpus", ()),
    "registers read as ones": (silent, "chain.gpus", ()),
    "fewer GPUs than at the last change": (
        lambda f: replace(f, provenance=record_of(driver={"gpus": 2})), "chain.gpus", ()
    ),
    "no driver": (no_driver, "chain.driver", ("chain.loaded",)),
    "no driver, nouveau has the GPU": (
        lambda f: taken_by("nouveau")(no_driver(f)),
        "chain.driver", ("chain.loaded", "chain.nouveau"),
    ),
    "headers are missing": (headless, "chain.headers", ("chain.build", "chain.loaded")),
    "removed from DKMS, headers are missing": (
        removed_from_dkms, "chain.headers", ("chain.build", "chain.loaded")
    ),
    "removed from DKMS, still loaded": (
        lambda f: replace(f, module_on_disk=None, dkms=()), "chain.build", ()
    ),
    "DKMS failed": (unbuilt, "chain.build", ("chain.loaded",)),
    "precompiled for another kernel": (
        precompiled_for_another_kernel, "chain.build", ("chain.loaded",)
    ),
    "not signed": (unsigned, "chain.signature", ("chain.loaded",)),
    "nouveau has the GPU": (taken_by("nouveau"), "chain.nouveau", ("chain.loaded",)),
    "nova has the GPU": (taken_by("nova_core"), "chain.nouveau", ("chain.loaded",)),
    "not loaded": (unloaded, "chain.loaded", ()),
    "the operator's driver is not loaded": (
        lambda f: unloaded(operated(f)), "chain.loaded", ()
    ),
    "the package is newer than the module": (newer_library, "chain.version", ("chain.cdi",)),
    "the library is newer than the module": (
        newer_library_alone, "chain.version", ("chain.cdi",)
    ),
    "no GPU is bound": (unbound, "chain.bound", ()),
    "one of two GPUs is not bound": (lambda f: second_gpu(f, driver=None), "chain.bound", ()),
    "proprietary modules for Blackwell": (
        unfit(RTX_5090, "NVIDIA"), "chain.fits", ("chain.nvml",)
    ),
    "proprietary modules for Blackwell, not bound": (
        unfit(RTX_5090, "NVIDIA", None), "chain.fits", ("chain.bound",)
    ),
    "open modules for Pascal": (
        unfit(P100, "Dual MIT/GPL"), "chain.fits", ("chain.nvml",)
    ),
    "nvidia-smi fails": (lambda f: replace(f, listed=SMI_FAILS), "chain.nvml", ()),
    "nvidia-smi does not answer": (
        lambda f: replace(f, listed=Listed(0, error="it did not answer")), "chain.nvml", ()
    ),
    "nvidia-smi lists one of two": (
        lambda f: replace(second_gpu(f), listed=Listed(1)), "chain.nvml", ()
    ),
    "no device nodes": (
        lambda f: replace(f, device_nodes=(), listed=SMI_FAILS), "chain.nodes", ("chain.nvml",)
    ),
    "no control node": (
        lambda f: replace(f, device_nodes=("/dev/nvidia0",), listed=SMI_FAILS),
        "chain.nodes", ("chain.nvml",),
    ),
    "persistence daemon failed": (down(PERSISTENCED), "chain.persistence", ()),
    "persistence daemon is stopped": (down(PERSISTENCED, "inactive"), "chain.persistence", ()),
    "no fabric manager": (
        lambda f: replace(f, pci=(*f.pci, NVSWITCH)), "chain.fabric", ()
    ),
    "fabric manager failed": (lambda f: switched(f, active="failed"), "chain.fabric", ()),
    "fabric manager is stopped": (lambda f: switched(f, active="inactive"), "chain.fabric", ()),
    "fabric manager of another version": (
        lambda f: switched(f, version=OLDER), "chain.fabric", ()
    ),
    "MIG is off after a boot": (
        lambda f: divided(f, "3g.20gb,3g.20gb", on=False), "chain.layout", ()
    ),
    "MIG is on, without devices": (lambda f: divided(f, "7g.40gb"), "chain.layout", ()),
    "MIG is on in place of off": (lambda f: divided(f, "off"), "chain.layout", ()),
    "another MIG layout": (
        lambda f: divided(f, "3g.20gb,3g.20gb", "3g.20gb"), "chain.layout", ()
    ),
    "toolkit was removed": (no_toolkit, "chain.toolkit", ()),
    "invalid daemon.json": (daemon_json("{"), "chain.config", ()),
    "daemon.json is a list": (daemon_json("[]"), "chain.config", ()),
    "option twice": (dockerd_options, "chain.config", ()),
    "key twice": (
        daemon_json('{"runtimes": {}, "runtimes": {}}'), "chain.config", ()
    ),
    "invalid config.toml": (containerd("version = = 3"), "chain.config", ("chain.nvidia_runtime",)),
    "config.toml of version 1": (
        containerd('[plugins.cri]\nsandbox_image = "pause"\n'),
        "chain.config", ("chain.nvidia_runtime",),
    ),
    "docker failed": (down("docker.service"), "chain.runtime", ()),
    "docker is stopped": (down("docker.service", "inactive"), "chain.runtime", ()),
    "docker starts again and again": (down("docker.service", "activating"), "chain.runtime", ()),
    "containerd failed": (
        lambda f: down("containerd.service")(on_containerd(f)), "chain.runtime", ()
    ),
    "containerd of a node is masked": (
        lambda f: without_containerd(on_containerd(f)), "chain.runtime", ()
    ),
    "containerd of a node with docker is masked": (beside_docker, "chain.runtime", ()),
    "CRI-O failed": (lambda f: down("crio.service")(on_crio(f, CRIO)), "chain.runtime", ()),
    "kubelet failed": (
        lambda f: down("kubelet.service")(on_containerd(f)), "chain.kubelet", ()
    ),
    "k3s failed": (
        lambda f: down("k3s-agent.service")(on_rancher(f, "k3s", "k3s-agent.service", "")),
        "chain.kubelet", (),
    ),
    "RKE2 is stopped": (
        lambda f: down("rke2-server.service", "inactive")(
            on_rancher(f, "rke2", "rke2-server.service", "")
        ),
        "chain.kubelet", (),
    ),
    "default runtime is not defined": (containerd(UNDEFINED), "chain.default_runtime", ()),
    "docker's default runtime is not defined": (
        lambda f: down("docker.service")(daemon_json('{"default-runtime": "kata"}')(f)),
        "chain.default_runtime", ("chain.runtime",),
    ),
    "docker's default runtime nvidia is not defined": (
        lambda f: down("docker.service")(daemon_json('{"default-runtime": "nvidia"}')(f)),
        "chain.default_runtime", ("chain.runtime",),
    ),
    "no runtime nvidia in containerd": (containerd(NO_NVIDIA), "chain.nvidia_runtime", ()),
    "no runtime nvidia in CRI-O": (lambda f: on_crio(f, ""), "chain.nvidia_runtime", ()),
    "k3s did not add the runtime": (
        lambda f: on_rancher(f, "k3s", "k3s-agent.service", K3S), "chain.nvidia_runtime", ()
    ),
    "two cgroup drivers": (containerd(OTHER_CGROUPS), "chain.cgroups", ()),
    "CDI of another driver": (stale_cdi, "chain.cdi", ()),
    "two CDI specifications": (two_cdi, "chain.cdi", ()),
    "no CDI specification by its service": (no_cdi, "chain.cdi", ()),
    "docker does not answer": (answering(docker=RuntimeAnswer()), "chain.runtime", ()),
    "docker has not read its file": (
        answering(docker=RuntimeAnswer(answered=True, default="runc", runtimes=("runc",))),
        "chain.effect", (),
    ),
    "containerd does not answer": (
        lambda f: answering(containerd=RuntimeAnswer())(on_containerd(f)), "chain.runtime", ()
    ),
    "CRI plugin failed": (
        lambda f: answering(containerd=RuntimeAnswer(answered=True, cri={CRI_PLUGIN: "error"}))(
            on_containerd(f)
        ),
        "chain.cri", (),
    ),
    "CRI plugin is disabled, kubelet failed": (
        lambda f: down("kubelet.service")(
            answering(containerd=RuntimeAnswer(answered=True))(on_containerd(f))
        ),
        "chain.cri", ("chain.kubelet",),
    ),
    "containerd has not read its file": (
        lambda f: answering(
            containerd=RuntimeAnswer(answered=True, runtimes=("runc",), cri={CRI_PLUGIN: "ok"})
        )(on_containerd(f)),
        "chain.effect", (),
    ),
    "CRI-O has not read its file": (lambda f: asked_crio(f, "crun"), "chain.effect", ()),
    "CRI-O does not answer": (
        lambda f: answering(crio=RuntimeAnswer())(on_crio(f, CRIO)), "chain.runtime", ()
    ),
    "the running containerd has two cgroup drivers": (
        lambda f: asked_containerd(f, nvidia="cgroupfs"), "chain.cgroups", ()
    ),
    "containerd and the kubelet have two cgroup drivers": (
        lambda f: asked_containerd(f, "cgroupfs", "cgroupfs"), "chain.cgroups", ()
    ),
    "an old containerd does not report its cgroup driver to the kubelet": (
        lambda f: old_containerd(asked_containerd(f, cgroups="cgroupfs", version="v1.35.0")),
        "chain.cgroups", (),
    ),
    "CRI-O and the kubelet have two cgroup drivers": (
        lambda f: asked_crio(f, "crun", "nvidia", cgroups="cgroupfs"), "chain.cgroups", ()
    ),
    "exporter does not answer": (lambda f: exported(f, status=0), "chain.metrics", ()),
    "exporter answers with an error": (lambda f: exported(f, status=500), "chain.metrics", ()),
    "exporter has no metrics": (exported, "chain.metrics", ()),
    "exporter has metrics of one of two GPUs": (
        lambda f: two_read_gpus(exported(f, "GPU-1")), "chain.metrics", ()
    ),
    "exporter failed": (down("nvidia-dcgm-exporter.service"), "chain.exporter", ()),
    "DCGM is stopped": (down("nvidia-dcgm.service", "inactive"), "chain.exporter", ()),
}  # fmt: skip
