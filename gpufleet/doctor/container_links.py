"""Reads the links of the chain from the container toolkit to the exporter. Pure."""

from __future__ import annotations

from gpufleet.doctor.models import Link, Verdict
from gpufleet.doctor.units import read_units
from gpufleet.facts.gpu import CdiSpec
from gpufleet.facts.model import NodeFacts

OPERATOR_TOOLKIT = "/usr/local/nvidia/toolkit"  # the toolkit of the GPU Operator's container
RUNTIME_PROGRAM, NVIDIA = "nvidia-container-runtime", "nvidia"  # program, name of the runtime
TOOLKIT_PACKAGES = ("nvidia-container-toolkit", "nvidia-container-toolkit-base", "nvidia-docker2")
CONFIG_FOLDERS = {  # runtime -> folders of its files, besides the file that its unit names
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
# The toolkit's own service, the file that it writes, and the file that can name another one
CDI_SERVICE, CDI_OUTPUT = "nvidia-cdi-refresh.service", "/var/run/cdi/nvidia.yaml"
CDI_SETTINGS = "/etc/nvidia-container-toolkit/nvidia-cdi-refresh.env"
CDI_OUTPUT_SETTING = "NVIDIA_CTK_CDI_OUTPUT_FILE_PATH"


def read_toolkit(facts: NodeFacts) -> Link | None:
    there = [facts.packages[name].upstream for name in TOOLKIT_PACKAGES if name in facts.packages]
    if there:
        return Link(there[0])
    named = [name for name in facts.runtimes if _names_program(facts, name)]
    if not named:
        return None
    return Link("not installed", f"The configuration of {', '.join(named)} names "
                   f"{RUNTIME_PROGRAM}, and the container toolkit is not installed.")  # fmt: skip


def read_runtime(facts: NodeFacts) -> Link | None:
    silent = [name for name, answer in facts.answers.items() if not answer.answered]
    if silent:
        fault = f"{silent[0]} runs and does not answer within 10 seconds: containers cannot start."
        return Link(f"{silent[0]} is silent", fault, f"{silent[0]}.service", Verdict.CRITICAL)
    units = tuple(dict.fromkeys(runtime.unit for runtime in facts.runtimes.values()))
    own = tuple(unit for unit in units if unit not in KUBELET_UNITS)
    return read_units(facts, own, "containers cannot start", failed=Verdict.CRITICAL)


def read_nvidia_runtime(facts: NodeFacts) -> Link | None:
    """Only nodes of Kubernetes: docker with the toolkit needs no runtime for `--gpus`. Of k3s and
    RKE2, finding GF447 reports it."""
    toolkit = any(name in facts.packages for name in TOOLKIT_PACKAGES)
    names = [
        name
        for name, runtime in facts.runtimes.items()
        if runtime.name != "docker" and runtime.running and runtime.unit not in KUBELET_UNITS
    ]
    if not (facts.kubelet and toolkit and names):
        return None
    without = [name for name in names if not _names_program(facts, name)]
    if not without:
        return Link("there")
    return Link("missing", f"The configuration of {', '.join(without)} has no runtime nvidia: "
                   "pods that name it do not start.", facts.runtimes[without[0]].unit)  # fmt: skip


def read_effect(facts: NodeFacts) -> Link | None:
    """The runtimes of a running docker, which reads its file when it starts or is reloaded."""
    answer = facts.answers.get("docker")
    if answer is None or not answer.answered:
        return None
    if NVIDIA in answer.runtimes or not _names_program(facts, "docker"):
        return Link(" ".join(answer.runtimes))
    fault = "daemon.json has the runtime nvidia, and the running docker does not know it."
    return Link(" ".join(answer.runtimes), fault, facts.runtimes["docker"].unit)


def read_cri(facts: NodeFacts) -> Link | None:
    """containerd's plugins for the kubelet. On a host without a kubelet, they may be off."""
    answer = facts.answers.get("containerd")
    unit = "containerd.service"
    kubelet = facts.services.get("kubelet.service")
    if not (answer and answer.answered and kubelet and kubelet.enabled == "enabled"):
        return None
    wrong = [f"{name} is in state {state}" for name, state in answer.cri.items() if state != "ok"]
    if answer.cri and not wrong:
        return Link("loaded")
    state = ", ".join(wrong) or "it is disabled"
    fault = f"containerd's CRI plugin does not work ({state}): the kubelet cannot start pods."
    return Link(state, fault, unit)


def read_cdi(facts: NodeFacts) -> Link | None:
    kept = service_spec(facts)
    if not facts.cdi_specs and kept and facts.loaded_driver:
        return Link("none", f"{CDI_SERVICE} is enabled, and {kept} is missing: containers that get "
                       "GPUs by CDI do not start.")  # fmt: skip
    if not facts.cdi_specs:
        return None
    stale = stale_specs(facts)
    if not stale:
        return Link(", ".join(spec.path for spec in facts.cdi_specs))
    return Link(f"{stale[0].path} of {stale[0].driver}", f"{stale[0].path} names the libraries "
                   f"of driver {stale[0].driver}, and {facts.loaded_driver} is loaded: containers "
                   "that get GPUs by CDI do not start.")  # fmt: skip


def stale_specs(facts: NodeFacts) -> list[CdiSpec]:
    """The CDI specifications of another driver than the loaded one."""
    loaded = facts.loaded_driver
    return [spec for spec in facts.cdi_specs if loaded and spec.driver not in ("", loaded)]


def service_spec(facts: NodeFacts) -> str | None:
    """The file that the toolkit's service writes, None if it is off or its settings name a file."""
    service = facts.services.get(CDI_SERVICE)
    if service is None or service.enabled != "enabled":
        return None
    return None if CDI_OUTPUT_SETTING in facts.texts.get(CDI_SETTINGS, "") else CDI_OUTPUT


def read_kubelet(facts: NodeFacts) -> Link | None:
    return read_units(facts, KUBELET_UNITS, "the node is NotReady")


def read_exporter(facts: NodeFacts) -> Link | None:
    return read_units(facts, EXPORTER_UNITS, "there are no metrics of the GPUs")


def _names_program(facts: NodeFacts, runtime: str) -> bool:
    """True if the files of a runtime name NVIDIA's, from its package or from the GPU Operator."""
    own = facts.runtimes[runtime].config_path
    return any(
        RUNTIME_PROGRAM in text and OPERATOR_TOOLKIT not in text
        for path, text in facts.texts.items()
        if path == own or path.startswith(CONFIG_FOLDERS[facts.runtimes[runtime].name])
    )
