"""Shared by the tests of runtime result."""

from __future__ import annotations

from typing import Any

from gpufleet.core.findings import Finding
from gpufleet.facts.model import NodeFacts
from gpufleet.toolkit.runtime_model import RuntimePlan
from tests.unit.hosts import bare_host
from tests.unit.toolkit.runtime_removal_plan_setup import edited
from tests.unit.toolkit.toolkit_setup import CONFIG, containerd_host, file, plan, runtime

CONF_D = "/etc/containerd/conf.d"
IMPORTS = f'imports = ["{CONF_D}/*.toml"]\n'
OLD = "io.containerd.grpc.v1.cri"
NEW = "io.containerd.cri.v1.runtime"
BINARY = "/usr/bin/nvidia-container-runtime"


def table(plugin: str, name: str, *options: str, kind: str = "io.containerd.runc.v2") -> str:
    """A runtime of containerd with these options."""
    head = f"[plugins.'{plugin}'.containerd.runtimes.{name}"
    lines = "".join(f"{option}\n" for option in options)
    return f"{head}]\nruntime_type = '{kind}'\n{head}.options]\n{lines}"


def binary(path: str = BINARY) -> str:
    return f'BinaryName = "{path}"'


SYSTEMD = "SystemdCgroup = true"


# The output of `containerd config default` of 2.2 and newer, shortened: it has two CRI tables.
DEFAULT_FILE = (
    f"version = 3\n{IMPORTS}[plugins.'{OLD}']\nstream_server_address = '127.0.0.1'\n"
    f"[plugins.'{NEW}'.containerd]\ndefault_runtime_name = 'runc'\n"
)


def host(version: str, files: dict[str, str]) -> NodeFacts:
    """A containerd host with the main file and drop-ins."""
    facts = containerd_host(files.pop(CONFIG, None), version)
    for path, text in files.items():
        facts = edited(facts, path, text)
    return facts


def planned(facts: NodeFacts, **settings: Any) -> RuntimePlan:
    (only,) = plan(facts, **settings).runtimes
    return only


def written(done: RuntimePlan) -> str:
    assert done.change is not None
    return done.change.after or ""


def only(done: RuntimePlan) -> Finding:
    (finding,) = done.findings
    return finding


def codes_of(done: RuntimePlan) -> list[str]:
    return [finding.code for finding in done.findings]


MAIN = "/etc/crio/crio.conf"
CRIO_D = "/etc/crio/crio.conf.d"


# The file that CRI-O's packages install (github.com/cri-o/packaging, 2026-11).
PACKAGED = """[crio.runtime]
default_runtime = "crun"
[crio.runtime.runtimes.crun]
runtime_path = "/usr/libexec/crio/crun"
runtime_root = "/run/crun"
monitor_path = "/usr/libexec/crio/conmon"
"""


def crio_host(files: dict[str, str]) -> NodeFacts:
    contents = file(MAIN, None) | file(f"{CRIO_D}/99-nvidia.toml", None)
    for path, text in files.items():
        contents |= file(path, text)
    return bare_host(files=contents, runtimes=runtime("crio", "1.34.1"))
