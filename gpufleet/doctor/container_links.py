"""Reads the links of the chain from the container toolkit to the exporter. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from gpufleet.core.names import count_noun
from gpufleet.core.versions import version_tuple
from gpufleet.doctor.models import Link, Verdict, load_asked_cgroups, load_steps
from gpufleet.doctor.units import read_units
from gpufleet.facts.gpu import CdiSpec
from gpufleet.facts.health import ExporterAnswer, HostHealth, KubeletAnswer
from gpufleet.facts.model import NodeFacts, Runtime

OPERATOR_TOOLKIT = "/usr/local/nvidia/toolkit"  # the toolkit of the GPU Operator's container
RUNTIME_PROGRAM, NVIDIA = "nvidia-container-runtime", "nvidia"  # program, name of the runtime
TOOLKIT_PACKAGES = ("nvidia-container-toolkit", "nvidia-container-toolkit-base", "nvidia-docker2")
CONFIG_FOLDERS = {  # runtime -> folders of its files, besides the file that its unit names
    "docker": ("/etc/docker/",),
    "containerd": ("/etc/containerd/", "/var/lib/rancher/"),
    "crio": ("/etc/crio/",),
}
_NVIDIA_TABLE = re.compile(r"""^\s*\[.*\.runtimes\.["']?nvidia["']?\s*\]""", re.MULTILINE)
ENDPOINTS = {  # part of the socket of the kubelet's runtime -> runtime
    "/crio/": "crio",
    "/k3s/": "",  # k3s and RKE2 set both cgroup drivers themselves
    "/containerd/": "containerd",
}  # with docker, cri-dockerd sets the driver itself
HTTP_OK, SERVER_ERROR = 200, 500
DEFAULT_ENDPOINT = "unix:///run/containerd/containerd.sock"  # of a kubelet that names none
YOUNG_EXPORTER = 120  # seconds: its first values come after its interval, 30 s by default
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
    found = read_units(facts, own, "containers cannot start", failed=Verdict.CRITICAL)
    lacking = _missing_runtime(facts)
    if lacking and not (found and found.fault):
        fault = f"{lacking.unit} does not run, and the kubelet needs it: pods cannot start."
        return Link(f"{lacking.unit} is off", fault, lacking.unit, Verdict.CRITICAL)
    return found


def _missing_runtime(facts: NodeFacts) -> Runtime | None:
    """The runtime of the kubelet, if it does not run: a unit that is off is meant to be so on other
    hosts. Without an answer of the kubelet, any runtime may be that of it."""
    if facts.kubelet_answer:
        found = facts.runtimes.get(_runtime_of_kubelet(facts.kubelet_answer))
        return found if found and not found.running else None
    kubelet = facts.services.get("kubelet.service")
    if kubelet is None or kubelet.enabled != "enabled":
        return None
    if any(runtime.running for runtime in facts.runtimes.values()):
        return None
    return next(iter(facts.runtimes.values()), None)


def _runtime_of_kubelet(kubelet: KubeletAnswer) -> str:
    """The name of the runtime at the socket of the kubelet, "" for one with settings of its own."""
    endpoint = kubelet.endpoint or DEFAULT_ENDPOINT
    return next((ENDPOINTS[part] for part in ENDPOINTS if part in endpoint), "")


def unit_of_runtime(facts: NodeFacts) -> str:
    """The unit of the kubelet's runtime or else of the only one, "" if it is not known."""
    name = _runtime_of_kubelet(facts.kubelet_answer) if facts.kubelet_answer else ""
    own = [facts.runtimes[name]] if name in facts.runtimes else [*facts.runtimes.values()]
    return own[0].unit if len(own) == 1 else ""


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
    """The runtimes that each running program knows. It reads its files when it starts or is
    reloaded."""
    answers = {name: each for name, each in facts.answers.items() if each.runtimes}
    read = "; ".join(f"{name}: {' '.join(each.runtimes)}" for name, each in answers.items())
    for name, answer in answers.items():
        if NVIDIA not in answer.runtimes and _defines_nvidia(facts, name):
            file = "daemon.json" if name == "docker" else f"The configuration of {name}"
            fault = f"{file} has the runtime nvidia, and the running {name} does not know it."
            return Link(read, fault, facts.runtimes[name].unit)
    return Link(read) if answers else None


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


def read_cgroups(facts: NodeFacts) -> Link | None:
    """The cgroup driver of the kubelet's running runtime, and that of the kubelet."""
    kubelet = facts.kubelet_answer
    name = _runtime_of_kubelet(kubelet) if kubelet else ""
    answer, runtime = facts.answers.get(name), facts.runtimes.get(name)
    if not (kubelet and runtime and answer and answer.cgroup_driver):
        return None
    driver, own = answer.cgroup_driver, answer.cgroups.get(NVIDIA, answer.cgroup_driver)
    if own != driver:
        return Link(f"{driver}, runtime nvidia {own}", f"{name} uses {own} for the "
                       f"runtime nvidia and {driver} for {answer.default}: pods that use it may "
                       "be killed repeatedly.", runtime.unit)  # fmt: skip
    first = load_asked_cgroups()
    old = bool(kubelet.version) and version_tuple(kubelet.version) < version_tuple(first.kubelet)
    if not old and version_tuple(runtime.version) >= version_tuple(first.runtimes[name]):
        return Link(f"{driver}, and the kubelet follows {name}")
    if kubelet.cgroups == driver:
        return Link(driver)
    return Link(f"{name} {driver}, kubelet {kubelet.cgroups}", f"{name} uses the cgroup driver "
                   f"{driver}, and the kubelet {kubelet.cgroups}: pods do not start, or the "
                   "node becomes unstable when memory is short.", runtime.unit)  # fmt: skip


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
    path, driver = stale[0].path, stale[0].driver
    return Link(f"{path} of {driver}", f"{path} names the libraries of driver {driver}, and "
                   f"{facts.loaded_driver} is loaded: containers that get GPUs by CDI do not "
                   "start.", path="" if path in (kept, *_written_specs()) else path)  # fmt: skip


def _written_specs() -> tuple[str, ...]:
    """The CDI specifications that gpufleet or the container toolkit may write."""
    fix = load_steps().steps["refresh_cdi"].fix
    return fix.paths if fix else ()


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


def read_metrics(facts: NodeFacts) -> Link | None:
    """The answers of the exporters. One that asks for a login, or that has just started, is not
    judged."""
    old = [each for each in facts.exporter_answers if each.age >= YOUNG_EXPORTER]
    if not old:
        return None
    read = "; ".join(f"port {each.port}: {_answer_words(each)}" for each in old)
    faults = [*_silent_exporters(old), *_unmeasured_gpus(old, facts.health)]
    unit = next((unit for unit in EXPORTER_UNITS[1:] if unit in facts.services), "")
    return Link(read, next(iter(faults), ""), unit)


def _answer_words(answer: ExporterAnswer) -> str:
    if answer.status == HTTP_OK:
        values = count_noun(answer.samples, "value")
        return f"{values} of {count_noun(len(answer.gpus), 'GPU')}"
    return f"status {answer.status}" if answer.status else "no answer"


def _silent_exporters(answers: Iterable[ExporterAnswer]) -> Iterator[str]:
    for each in answers:
        if each.status == 0 or each.status >= SERVER_ERROR:
            how = f"answers with status {each.status}"
            how = how if each.status else "does not answer within 10 seconds"
            yield f"The exporter on port {each.port} {how}: there are no metrics of the GPUs."


def _unmeasured_gpus(answers: Iterable[ExporterAnswer], health: HostHealth | None) -> Iterator[str]:
    """Why nvidia-smi reads more GPUs than the exporters have values of."""
    good = [each for each in answers if each.status == HTTP_OK]
    known = frozenset[str]().union(*(each.gpus for each in good))
    gpus = [gpu for gpu in health.gpus if gpu.uuid and not gpu.trouble] if health else []
    missing = ", ".join(gpu.slot for gpu in gpus if gpu.uuid not in known)
    if good and not any(each.samples for each in good):
        yield f"The exporter on port {good[0].port} answers, and has no metrics of any GPU."
    elif good and len(known) < len(gpus):
        yield f"The exporter on port {good[0].port} answers, and has no metrics of GPU {missing}."


def _defines_nvidia(facts: NodeFacts, runtime: str) -> bool:
    """True if the files of a runtime have the runtime nvidia."""
    if runtime == "docker":
        return _names_program(facts, runtime)
    return any(_NVIDIA_TABLE.search(text) for text in _files_of(facts, runtime))


def _names_program(facts: NodeFacts, runtime: str) -> bool:
    """True if the files of a runtime name NVIDIA's, from its package or from the GPU Operator."""
    return any(
        RUNTIME_PROGRAM in text and OPERATOR_TOOLKIT not in text
        for text in _files_of(facts, runtime)
    )


def _files_of(facts: NodeFacts, runtime: str) -> list[str]:
    """The texts of a runtime's files, [] if the host does not have it."""
    if runtime not in facts.runtimes:
        return []
    own = facts.runtimes[runtime].config_path
    folders = CONFIG_FOLDERS[facts.runtimes[runtime].name]
    return [text for path, text in facts.texts.items() if path == own or path.startswith(folders)]
