"""Reads the links of the software chain, from the driver's packages to the kubelet. Pure.

A reader returns what it read, with a fault if a link is broken, or None if the host does not have
the link. Faults that a finding reports, such as those of driver/health.py, are not repeated here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from gpufleet.doctor.models import Reading, Verdict
from gpufleet.driver.files import RIVALS, own_gpus
from gpufleet.facts.model import NodeFacts, Service

OPERATOR_TOOLKIT = "/usr/local/nvidia/toolkit"  # where the GPU Operator's container has the toolkit
RUNTIME_PROGRAM = "nvidia-container-runtime"
TOOLKIT_PACKAGES = ("nvidia-container-toolkit", "nvidia-container-toolkit-base", "nvidia-docker2")
CONFIG_FOLDERS = {  # runtime -> where its files are, besides the one that its unit names
    "docker": ("/etc/docker/",),
    "containerd": ("/etc/containerd/", "/var/lib/rancher/"),
    "crio": ("/etc/crio/",),
}
KUBELET_UNITS = (
    "kubelet.service",
    "k3s.service",
    "k3s-agent.service",
    "rke2-server.service",
    "rke2-agent.service",
)
EXPORTER_UNITS = (
    "nvidia-dcgm.service",
    "dcgm-exporter.service",
    "nvidia-dcgm-exporter.service",
    "gpufleet-dcgm-exporter.service",
)
FABRIC_MANAGER, PERSISTENCED = "nvidia-fabricmanager", "nvidia-persistenced.service"


@dataclass(frozen=True, slots=True)
class _Unit:
    """A unit that should run and does not."""

    name: str
    failed: bool
    state: str


def _read_gpus(facts: NodeFacts) -> Reading:
    return Reading(f"{len(facts.gpus)} on the PCI bus")


def _read_driver(facts: NodeFacts) -> Reading:
    module = facts.module_on_disk
    version = facts.loaded_driver or (module.version if module else None) or facts.library
    if version or facts.operator_driver or _dkms(facts):
        return Reading(version or "installed")
    return Reading("none", "No NVIDIA driver is installed: no program can use the GPUs.")


def _read_headers(facts: NodeFacts) -> Reading | None:
    if not _dkms(facts):
        return None
    if facts.kernel.headers or facts.module_on_disk:
        return Reading("there" if facts.kernel.headers else "missing, and not needed now")
    kernel = facts.kernel.release
    return Reading("missing", f"The headers of the running kernel {kernel} are missing, so DKMS "
                   "cannot build the module.")  # fmt: skip


def _read_build(facts: NodeFacts) -> Reading | None:
    if facts.operator_driver or not (facts.library or facts.module_on_disk or _dkms(facts)):
        return None
    kernel = facts.kernel.release
    if facts.module_on_disk or "nvidia" in facts.modules:
        return Reading(f"there for {kernel}")
    return Reading("missing", f"There is no nvidia module for the running kernel {kernel}.")


def _read_signature(facts: NodeFacts) -> Reading | None:
    module = facts.module_on_disk
    if not module or facts.kernel.secure_boot is None:
        return None
    if not facts.kernel.secure_boot:
        return Reading("Secure Boot is off")
    if module.signer or "nvidia" in facts.modules:
        return Reading(f"Secure Boot is on, signed by {module.signer or 'an enrolled key'}")
    return Reading("Secure Boot is on, not signed", "Secure Boot is on, and the nvidia module is "
                   "not signed: the kernel rejects it.")  # fmt: skip


def _read_nouveau(facts: NodeFacts) -> Reading:
    rivals = {gpu.driver: gpu.slot for gpu in facts.gpus if gpu.driver in RIVALS}
    if not rivals:
        return Reading("none")
    names = ", ".join(f"{name} has {slot}" for name, slot in rivals.items())
    return Reading(names, f"Another kernel driver has a GPU: {names}.")


def _read_loaded(facts: NodeFacts) -> Reading:
    if "nvidia" in facts.modules:
        return Reading(f"nvidia {facts.loaded_driver or ''}".strip())
    if not facts.operator_driver:
        return Reading("not loaded")  # finding GF150 says if it should be
    return Reading("not loaded", "The GPU Operator's driver container has not loaded the module.")


def _read_version(facts: NodeFacts) -> Reading | None:
    if facts.loaded_driver is None:
        return None
    module = facts.module_on_disk
    on_disk = f", on disk {module.version}" if module else ""
    library = f", library {facts.library}" if facts.library else ""
    return Reading(f"loaded {facts.loaded_driver}{on_disk}{library}")


def _read_bound(facts: NodeFacts) -> Reading | None:
    if "nvidia" not in facts.modules:
        return None
    bound = [gpu for gpu in facts.gpus if gpu.driver == "nvidia"]
    return Reading(f"{len(bound)} of {len(facts.gpus)}")


def _read_nodes(facts: NodeFacts) -> Reading | None:
    """Nodes are created at the first use of a GPU, so a missing one alone is no fault."""
    bound = [gpu for gpu in facts.gpus if gpu.driver == "nvidia"]
    if not bound or facts.operator_driver:
        return None
    there = [path for path in facts.device_nodes if path.removeprefix("/dev/nvidia").isdigit()]
    read = f"{len(there)} for {len(bound)}"
    if "/dev/nvidiactl" not in facts.device_nodes:
        read += ", without /dev/nvidiactl"
    elif len(there) >= len(bound):
        return Reading(read)
    if facts.listed is None or not facts.listed.error:
        return Reading(f"{read}, created at the first use")
    return Reading(read, "Device nodes of the driver are missing, and nvidia-smi fails: programs "
                   "cannot open the GPUs.")  # fmt: skip


def _read_nvml(facts: NodeFacts) -> Reading | None:
    if facts.listed is None:
        return None
    return Reading(facts.listed.error or f"{facts.listed.gpus} listed")


def _read_persistence(facts: NodeFacts) -> Reading | None:
    return _service_reading(facts, (PERSISTENCED,), "each program waits until its GPU has started")


def _read_fabric(facts: NodeFacts) -> Reading | None:
    unit = f"{FABRIC_MANAGER}.service"
    service = facts.services.get(unit)
    if not facts.nvswitches or facts.operator_driver or "nvidia" not in facts.modules:
        return None
    if service is None:
        return Reading("not installed", "The host has NVSwitches and no fabric manager: CUDA fails "
                       "with error 802.", unit)  # fmt: skip
    if service.active != "active":
        return Reading(service.active, f"The fabric manager does not run ({service.active}): CUDA "
                       "fails with error 802.", unit)  # fmt: skip
    versions = {
        each.upstream for name, each in facts.packages.items() if name.startswith(FABRIC_MANAGER)
    }
    if versions and facts.loaded_driver and facts.loaded_driver not in versions:
        other = ", ".join(sorted(versions))
        return Reading(f"active, {other}", f"The fabric manager is {other}, the driver "
                       f"{facts.loaded_driver}: they need the same version.", unit)  # fmt: skip
    return Reading(f"active {' '.join(versions)}".strip())


def _read_toolkit(facts: NodeFacts) -> Reading | None:
    there = [facts.packages[name].upstream for name in TOOLKIT_PACKAGES if name in facts.packages]
    if there:
        return Reading(there[0])
    named = [name for name in facts.runtimes if _names_program(facts, name)]
    if not named:
        return None
    return Reading("not installed", f"The configuration of {', '.join(named)} names "
                   f"{RUNTIME_PROGRAM}, and the container toolkit is not installed.")  # fmt: skip


def _read_runtime(facts: NodeFacts) -> Reading | None:
    units = tuple(dict.fromkeys(runtime.unit for runtime in facts.runtimes.values()))
    own = tuple(unit for unit in units if unit not in KUBELET_UNITS)
    return _service_reading(facts, own, "containers cannot start", failed=Verdict.CRITICAL)


def _read_nvidia_runtime(facts: NodeFacts) -> Reading | None:
    """Of a node of Kubernetes: a docker with the toolkit needs no runtime for `--gpus`."""
    toolkit = any(name in facts.packages for name in TOOLKIT_PACKAGES)
    names = [name for name in facts.runtimes if name != "docker" and facts.runtimes[name].running]
    if not (facts.kubelet and toolkit and names):
        return None
    without = [name for name in names if not _names_program(facts, name)]
    if not without:
        return Reading("there")
    return Reading("missing", f"The configuration of {', '.join(without)} has no runtime nvidia: "
                   "pods that name it do not start.", facts.runtimes[without[0]].unit)  # fmt: skip


def _read_cdi(facts: NodeFacts) -> Reading | None:
    if not facts.cdi_specs:
        return None
    loaded = facts.loaded_driver
    stale = [spec for spec in facts.cdi_specs if loaded and spec.driver not in ("", loaded)]
    if not stale:
        return Reading(", ".join(spec.path for spec in facts.cdi_specs))
    return Reading(f"{stale[0].path} of {stale[0].driver}", f"{stale[0].path} names the libraries "
                   f"of driver {stale[0].driver}, and {loaded} is loaded: containers that get GPUs "
                   "by CDI do not start.")  # fmt: skip


def _read_kubelet(facts: NodeFacts) -> Reading | None:
    return _service_reading(facts, KUBELET_UNITS, "the node is NotReady")


def _read_exporter(facts: NodeFacts) -> Reading | None:
    return _service_reading(facts, EXPORTER_UNITS, "there are no metrics of the GPUs")


def _dkms(facts: NodeFacts) -> bool:
    return any(each.name.startswith("nvidia") for each in facts.dkms)


def _names_program(facts: NodeFacts, runtime: str) -> bool:
    """True if the files of a runtime name NVIDIA's, from its package or from the GPU Operator."""
    own = facts.runtimes[runtime].config_path
    return any(
        RUNTIME_PROGRAM in text and OPERATOR_TOOLKIT not in text
        for path, text in facts.texts.items()
        if path == own or path.startswith(CONFIG_FOLDERS[facts.runtimes[runtime].name])
    )


def _service_reading(
    facts: NodeFacts, names: tuple[str, ...], effect: str, *, failed: Verdict | None = None
) -> Reading | None:
    """The units of a link that exist. A unit that is disabled and does not run is no fault.
    `failed`: verdict of a unit that has failed, if not the severity of the check."""
    there = [facts.services[name] for name in names if name in facts.services]
    if not there:
        return None
    read = ", ".join(f"{each.name} {each.active}" for each in there)
    down = next((unit for each in there if (unit := _down(each))), None)
    if down is None:
        return Reading(read)
    fault = f"{down.name} {down.state}: {effect}."
    return Reading(read, fault, down.name, failed if down.failed else None)


def _down(service: Service) -> _Unit | None:
    if service.active == "failed":
        return _Unit(service.name, failed=True, state="has failed")
    if service.active == "inactive" and service.enabled == "enabled":
        return _Unit(service.name, failed=False, state="is enabled and does not run")
    if service.active == "activating":
        return _Unit(service.name, failed=False, state="is still starting")
    return None


Reader = Callable[[NodeFacts], Reading | None]
READERS: dict[str, Reader] = {
    "chain.gpus": _read_gpus,
    "chain.driver": _read_driver,
    "chain.headers": _read_headers,
    "chain.build": _read_build,
    "chain.signature": _read_signature,
    "chain.nouveau": _read_nouveau,
    "chain.loaded": _read_loaded,
    "chain.version": _read_version,
    "chain.bound": _read_bound,
    "chain.nodes": _read_nodes,
    "chain.nvml": _read_nvml,
    "chain.persistence": _read_persistence,
    "chain.fabric": _read_fabric,
    "chain.toolkit": _read_toolkit,
    "chain.runtime": _read_runtime,
    "chain.nvidia_runtime": _read_nvidia_runtime,
    "chain.cdi": _read_cdi,
    "chain.kubelet": _read_kubelet,
    "chain.exporter": _read_exporter,
}
OF_THE_DRIVER = tuple(READERS)[: tuple(READERS).index("chain.toolkit")]  # need a GPU


def read_chain(facts: NodeFacts) -> Mapping[str, Reading | None]:
    """The links of a host's chain. A host without GPUs of its own has none of the driver's."""
    skipped = () if own_gpus(facts) or facts.taken else OF_THE_DRIVER
    return {name: None if name in skipped else read(facts) for name, read in READERS.items()}
