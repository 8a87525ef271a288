"""Compare `gpufleet cluster create` on bare hosts with a script that runs the same commands."""

from __future__ import annotations

import json
import os
import shlex
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.fleet import apt_commands, each, read_file, record, write_file
from benchmarks.ours import Programs
from benchmarks.timing import RunFailed, timed
from benchmarks.typed_cluster import TypedCluster
from gpufleet.node.catalog import load_catalog
from gpufleet_sandbox import Host, Sandbox
from gpufleet_sandbox.kubernetes.cluster import inventory, prepare
from tests.cluster.fake_charts import write_charts

KUBERNETES = "1.36"
KINDS = {"ubuntu2404": 2, "debian12": 1}  # the first is the control plane
GPUFLEET = (sys.executable, "-c", "from gpufleet.cli import main; main(prog_name='gpufleet')")
MAY_CHANGE = ("Hosts", "GPU stack")  # phases; the others only look
CREATING = ("Hosts", "Nodes", "GPU stack")  # phases; the others check before and after
LIMIT_SECONDS = 900


@dataclass(frozen=True, slots=True)
class Creation:
    """Seconds of wall time. `ours`: the whole command on bare hosts, of which `phases` are parts;
    `typed`: the same commands by a script; `again`: the phases that may change something, on the
    converged cluster; `floor`: one connection and the fact command on each host, and one read of
    all pods."""

    hosts: int
    phases: tuple[tuple[str, float], ...]
    ours: float
    typed: float
    again: float
    floor: float

    @property
    def creating(self) -> float:
        """Seconds of the phases that do the same as the script."""
        return sum(seconds for name, seconds in self.phases if name in CREATING)


@dataclass(frozen=True, slots=True)
class Typed:
    """The apt commands, files and reboot of one host, from its logs and its record."""

    host: Host
    packages: Sequence[str]  # apt's commands
    files: Mapping[str, bytes]  # that gpufleet wrote or changed
    boots: bool  # the installation rebooted it
    runtimes: Sequence[str]
    cdi: str  # path of the spec

    @classmethod
    def seen_on(cls, host: Host, boot: str, before: Sequence[str]) -> Typed:
        """The changes since the boot `boot` and after apt's commands `before`."""
        known = record(host)
        toolkit, kubernetes = known.get("toolkit", {}), known.get("kubernetes", {})
        runtimes = toolkit.get("runtimes", {})
        configured = [part.get("config") for part in (*runtimes.values(), kubernetes["containerd"])]
        keys = ("keyring", "source_file")
        sources = [known[role].get(key) for role in known if role in ROLES for key in keys]
        sources += kubernetes_sources()
        paths = dict.fromkeys(filter(None, [*known["files"], *configured, *sources]))
        return cls(
            host,
            apt_commands(host)[len(before) :],
            {path: read_file(host, path) for path in paths},
            host.boot_id() != boot,
            tuple(runtimes),
            toolkit.get("cdi", {}).get("path", ""),
        )

    def type(self) -> None:
        """Repeat these changes on a bare host, up to the start of kubeadm."""
        for path, data in self.files.items():
            write_file(self.host, path, data)
        self._ssh(["export DEBIAN_FRONTEND=noninteractive", "apt-get -q update", *self.packages])
        if self.boots:
            self.host.reboot()
        spec = [f"nvidia-ctk cdi generate --output={self.cdi}"] if self.cdi else []
        self._ssh([*spec, "systemctl restart containerd", "sysctl -q --load=" + SYSCTLS])

    def _ssh(self, commands: Sequence[str]) -> None:
        script = "; ".join(["set -e", *commands])
        self.host.ssh(f"sudo bash -c {shlex.quote(script)}", timeout=LIMIT_SECONDS)


def kubernetes_sources() -> list[str]:
    """The files by which apt knows the repository of Kubernetes; the record does not name them."""
    layouts = load_catalog().kubernetes.repository.layouts
    return [
        path for each in layouts if "apt" in each.managers for path in (each.file, each.keyring)
    ]


ROLES = ("driver", "toolkit", "exporter", "kubernetes")
SYSCTLS = "/etc/sysctl.d/90-gpufleet-kubernetes.conf"


def measure(name: str, work: Path, progress: Callable[[str], None]) -> Creation:
    """Create the cluster, run again, then create it by the script on hosts made bare again."""
    box = Sandbox(name, progress, images="imitation")
    box.down()
    prepare(KUBERNETES, progress)
    try:
        for kind, copies in KINDS.items():
            box.up([kind], copies)
        return _measure(box, work, progress)
    finally:
        box.down()


def _measure(box: Sandbox, work: Path, progress: Callable[[str], None]) -> Creation:
    hosts = [host for host in box.hosts.values() if host.kind.name in KINDS]
    write_charts(work / "charts")
    environment = {"GPUFLEET_SANDBOX": box.name, "GPUFLEET_CHARTS": str(work / "charts")}
    boots = [(host.boot_id(), apt_commands(host)) for host in hosts]
    phases, ours = _create(environment, work)
    progress(f"{len(hosts)} bare hosts: gpufleet cluster create {ours:.0f} s")
    again, _ = _create(environment, work)
    programs = Programs(environment, work)
    cluster = TypedCluster.seen_on(box, hosts[0], work)
    floor = programs.floor(hosts).wall + cluster.pods_read()
    typed = [Typed.seen_on(host, *seen) for host, seen in zip(hosts, boots, strict=True)]
    each(hosts, Host.reset)
    began = time.monotonic()
    each(typed, Typed.type, at_once=len(typed))
    cluster.type(hosts)
    by_hand = time.monotonic() - began
    progress(f"{len(hosts)} bare hosts: the same commands by a script {by_hand:.0f} s")
    changing = sum(again[phase] for phase in MAY_CHANGE)
    return Creation(len(hosts), tuple(phases.items()), ours, by_hand, changing, floor)


def _create(environment: Mapping[str, str], work: Path) -> tuple[dict[str, float], float]:
    """Seconds of each phase of `gpufleet cluster create`, and of the whole command."""
    report = work / "create.json"
    words = [*GPUFLEET, "cluster", "create", str(inventory()), "--yes", "--json", str(report)]
    run = timed(words, log=work / "create.log", env={**os.environ, **environment})
    phases: list[dict[str, Any]] = json.loads(report.read_text())["phases"]
    if failed := [phase["name"] for phase in phases if phase["result"] != "passed"]:
        raise RunFailed(f"gpufleet cluster create: {', '.join(failed)} failed")
    return {phase["name"]: phase["seconds"] for phase in phases}, run.wall
