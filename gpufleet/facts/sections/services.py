"""Parses services, container runtimes and GPU work."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Literal

from gpufleet.facts.model import GpuProcess, ManagedFile, Package, Runtime, Service
from gpufleet.facts.sections import split_records

COMMAND_WORDS, COMMAND_CHARS = 4, 80  # limits of a command line in reports
RUNS = ("active", "activating", "reloading")
_RANCHER = {
    "k3s.service": "/var/lib/rancher/k3s",
    "k3s-agent.service": "/var/lib/rancher/k3s",
    "rke2-server.service": "/var/lib/rancher/rke2",
    "rke2-agent.service": "/var/lib/rancher/rke2",
}
_KUBELETS = (
    "kubelet.service",
    "snap.microk8s.daemon-kubelite.service",
    "snap.k8s.kubelet.service",
    "k0scontroller.service",  # `k0s install controller --single` is the usual way to one node
    "k0sworker.service",
    *_RANCHER,
)
_WITH_COMMAND = (
    "docker.service",
    "containerd.service",
    "crio.service",
    "nvidia-persistenced.service",
    *_KUBELETS,
)
_PACKAGES = {
    # docker-stable: SLES 15; containerd-stable: Ubuntu 26.04 (its release notes, 2026-04)
    "docker": ("docker-ce", "docker.io", "moby-engine", "docker-engine", "docker", "docker-stable"),
    "containerd": ("containerd.io", "containerd", "containerd-stable", "moby-containerd"),
    "crio": ("cri-o",),
}
_CONFIG = {
    "docker": "/etc/docker/daemon.json",
    "containerd": "/etc/containerd/config.toml",
    "crio": "/etc/crio/crio.conf",
}
_LOCAL = "/usr/local/"  # programs there have no package; a packaged one may exist too
_COMMAND = {"docker": "dockerd", "containerd": "containerd", "crio": "crio"}
_ARGV = re.compile(r"argv\[\]=(.*?) ; ignore_errors=")
_OPTION = re.compile(r"(?:--config(?:-file)?|(?:containerd|crio) -c)[= ](\S+)")  # kOps has -c
_VERSION = re.compile(r"\d+(?:\.\d+)+")

RuntimeName = Literal["docker", "containerd", "crio"]


def parse_services(lines: Sequence[str]) -> dict[str, Service]:
    """Units by name, from `systemctl show`: one block per unit, separated by empty lines.

    Units without a unit file are not queried, so the result lacks them.
    """
    services: dict[str, Service] = {}
    for block in "\n".join(lines).strip().split("\n\n"):
        properties = dict(line.partition("=")[::2] for line in block.splitlines())
        for name in properties.get("Names", "").split():
            argv = _ARGV.search(properties.get("ExecStart", ""))
            needs = f"{properties.get('Requires')} {properties.get('BindsTo')}".split()
            services[name] = Service(
                name=name,
                load=properties.get("LoadState", ""),
                active=properties.get("ActiveState", ""),
                enabled=properties.get("UnitFileState", ""),
                exec_start=argv.group(1) if argv and name in _WITH_COMMAND else "",
                started=properties.get("ActiveEnterTimestampMonotonic", ""),
                changed=properties.get("NeedDaemonReload") == "yes",
                with_containerd="containerd.service" in needs,
            )
    return services


def runs_kubelet(services: Mapping[str, Service]) -> bool:
    """True if a kubelet, or a distribution that contains one, is running or starting."""
    return any(name in services and services[name].active in RUNS for name in _KUBELETS)


@dataclass(slots=True)
class _Reported:
    """The parsed `runtimes` section."""

    commands: set[str] = field(default_factory=set)
    containers: dict[str, int] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    without: set[str] = field(default_factory=set)


def _reported(lines: Sequence[str]) -> _Reported:
    reported = _Reported()
    for word, rest in split_records(lines):
        if word == "command":
            reported.commands.add(rest)
        elif word == "containers":
            name, count = rest.split()
            reported.containers[name] = int(count)
        elif word == "without":
            reported.without.add(rest)
        elif word == "version":
            name, _, text = rest.partition(" ")
            reported.versions[name] = text
    return reported


def runs_rootless_docker(lines: Sequence[str]) -> bool:
    """True if a user has the socket of a docker that runs without root."""
    return ("rootless", "docker") in split_records(lines)


def parse_runtimes(
    lines: Sequence[str],
    packages: Mapping[str, Package],
    services: Mapping[str, Service],
    files: Mapping[str, ManagedFile],
) -> dict[str, Runtime]:
    """Runtimes by name; a k3s or RKE2 in addition to containerd, under its unit's stem."""
    reported = _reported(lines)
    runtimes: dict[str, Runtime] = {}
    names: tuple[RuntimeName, ...] = ("docker", "containerd", "crio")
    for name in names:
        service = services.get(f"{name}.service")
        command = _COMMAND[name]
        if command not in reported.commands and (service is None or service.load == "not-found"):
            continue
        found = [packages[known] for known in _PACKAGES[name] if known in packages]
        # CRI-O's packages can carry its minor version in their name: cri-o-1.30.
        found += [packages[key] for key in packages if name == "crio" and key.startswith("cri-o-1")]
        packaged = _find(_VERSION, found[0].upstream) if found else ""
        local = _find(_VERSION, reported.versions.get(command, ""))
        unpackaged = service is not None and service.exec_start.startswith(_LOCAL)
        version = (local or packaged) if unpackaged else (packaged or local)
        runtimes[name] = _runtime(name, version, service, files, reported)
    for unit, directory in _RANCHER.items():
        service = services.get(unit)
        if service is None or service.load != "loaded":
            continue
        key = "containerd" if "containerd" not in runtimes else unit.removesuffix(".service")
        runtimes[key] = Runtime(
            name="containerd",
            version=_find(re.compile(r"(?<=v)\d+(?:\.\d+)+"), reported.versions.get("rancher", "")),
            unit=unit,
            config_path=f"{directory}/agent/etc/containerd/config.toml",
            running=service.active in RUNS,
            containers=reported.containers.get("k3s", 0),
        )
    return runtimes


def _find(pattern: re.Pattern[str], text: str) -> str:
    match = pattern.search(text)
    return match.group(0) if match else ""


def _runtime(
    name: RuntimeName,
    version: str,
    service: Service | None,
    files: Mapping[str, ManagedFile],
    reported: _Reported,
) -> Runtime:
    command = service.exec_start if service else ""
    option = _OPTION.search(command)
    path = option.group(1) if option else _CONFIG[name]
    return Runtime(
        name=name,
        version=version,
        unit=f"{name}.service",
        config_path=path,
        running=service is not None and service.active in RUNS,
        containers=reported.containers.get(name, 0),
        runc_in_path="runc" not in reported.without,
        live_restore=name == "docker" and _live_restore(files.get(path), command),
    )


def _live_restore(file: ManagedFile | None, command: str) -> bool:
    if re.search(r"--live-restore(?![-=\w])|--live-restore=true", command):
        return True
    try:
        config = json.loads(file.content.lstrip("\ufeff")) if file and file.content else {}
    except (ValueError, RecursionError):
        # Preflight reports an invalid daemon.json; here it counts as unknown.
        return False
    return isinstance(config, dict) and config.get("live-restore") is True


def parse_gpu(lines: Sequence[str]) -> tuple[tuple[GpuProcess, ...], int, int]:
    """Processes with an open GPU device, including driver daemons; the number of GPU pods; and the
    number of containers with GPUs."""
    commands: dict[int, str] = {}
    arguments: dict[int, str] = {}
    devices: dict[int, set[str]] = {}
    groups: dict[int, str] = {}
    pods: set[str] = set()
    given: set[str] = set()
    for word, rest in split_records(lines):
        if word == "pod":
            pods.add(rest)
        elif word == "given":
            given.add(rest)
        elif word == "group":
            number, _, group = rest.partition(" ")
            groups[int(number)] = group
        elif word == "command":
            number, _, line = rest.partition(" ")
            arguments[int(number)] = _program_of(line)
        elif word == "process":
            text, device, *command = rest.split(" ", 2)
            pid = int(text)
            commands[pid] = command[0] if command else ""
            devices.setdefault(pid, set()).add(device)
    processes = tuple(
        GpuProcess(
            pid,
            commands[pid],
            tuple(sorted(devices[pid])),
            arguments.get(pid, ""),
            groups.get(pid, ""),
        )
        for pid in sorted(commands)
    )
    return processes, len(pods), len(given)


def _program_of(line: str) -> str:
    """The first words of a command line, up to an argument that may hold a secret."""
    words = line.split()
    kept = list(takewhile(lambda word: not re.match("--|.*(=|://)", word), words[:COMMAND_WORDS]))
    shown = " ".join(kept)[:COMMAND_CHARS]
    return shown if len(kept) == len(words) else f"{shown} …"
