"""Runs the deploys of clusters as users do: the pyinfra command, an inventory, a JSON report."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Timer
from typing import Any, NoReturn

import pytest
from kubernetes import client

from gpufleet.core.versions import version_tuple
from gpufleet.helm.chart_choice import choose_charts, load_charts
from gpufleet_sandbox.cluster import Cluster
from tests import warm

ROOT = Path(__file__).resolve().parents[2]
PYINFRA = Path(sys.executable).with_name("pyinfra")
INVENTORY = """\
import json
gpu_cluster = (['@local'], json.loads({data!r}))
gpu_nodes = [(name, data) for name, data in json.loads({nodes!r}).items()]
"""
SECONDS = 900
STACK = ["kube-prometheus-stack", "node-feature-discovery", "nvidia-device-plugin", "dcgm-exporter"]
REAL_CHARTS = os.environ.get("GPUFLEET_CHARTS")  # a folder of the real charts' archives


@dataclass(frozen=True, slots=True)
class Outcome:
    """The exit status, output and report of a run, with its wall time in `seconds`."""

    returncode: int
    output: str
    seconds: float
    report: dict[str, Any] = field(default_factory=dict)  # of the cluster

    @property
    def codes(self) -> set[str]:
        return {finding["code"] for finding in self.report.get("findings", ())}


@dataclass(slots=True)
class Bench:
    """A control plane for one test, and the charts to deploy on it."""

    cluster: Cluster
    charts: Path
    preferred: bool = False  # with a higher priority than other tests
    seconds: float = SECONDS  # time limit of a run
    nodes: dict[str, dict[str, Any]] = field(default_factory=dict)  # gpu_nodes, not connected to

    def data(self, **more: Any) -> dict[str, Any]:
        """The inventory's data: access to the cluster, and the test's settings. Simulated nodes
        advertise their GPUs without a plugin, which would keep gpufleet's out."""
        return {
            "device_plugin_enabled": True,
            "cluster_kubeconfig": str(self.cluster.kubeconfig),
            "cluster_helm": str(self.cluster.helm),
            "cluster_chart_dir": str(self.charts),
            **more,
        }

    def start(
        self, folder: Path, *options: str, deploy: str = "gpu_cluster", **data: Any
    ) -> subprocess.Popen[str]:
        """Start a run of deploys/DEPLOY.py in a new session."""
        words, environment = self._command(folder, options, deploy, data)
        process = subprocess.Popen(
            words, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, start_new_session=True,
        )  # fmt: skip
        if self.preferred:
            prefer(process.pid)
        return process

    def _command(
        self, folder: Path, options: Sequence[str], deploy: str, data: dict[str, Any]
    ) -> tuple[list[str], dict[str, str]]:
        """Command line and environment of a run whose inventory and report are in `folder`."""
        inventory = folder / "inventory.py"
        self.write_inventory(inventory, data)
        yes = [] if "--dry" in options else ["-y"]
        yes += ["--limit", "gpu_cluster"] if self.nodes else []
        words = [str(PYINFRA), *yes, *options, str(inventory), f"deploys/{deploy}.py"]
        return words, {**os.environ, "GPUFLEET_REPORT": str(folder / "report.json")}

    def write_inventory(self, path: Path, data: dict[str, Any]) -> None:
        """An inventory of the cluster, with these data and the bench's nodes."""
        whole, nodes = json.dumps(self.data(**data)), json.dumps(self.nodes)
        path.write_text(INVENTORY.format(data=whole, nodes=nodes))

    def raise_priority(self) -> None:
        """Give this cluster and later runs on it a higher priority than other tests."""
        self.preferred = True
        for server in self.cluster.processes:
            prefer(server.pid)

    def reset_priority(self) -> None:
        """Reset the priority for the next test with this cluster."""
        if self.preferred:
            for server in self.cluster.processes:
                prefer(server.pid, 0)

    def deploy(self, *options: str, deploy: str = "gpu_cluster", **data: Any) -> Outcome:
        """Run a deploy to its end."""
        with TemporaryDirectory(prefix="gpufleet-test-") as name:
            began = time.monotonic()
            words, environment = self._command(Path(name), options, deploy, data)
            printed = Path(name, "printed")
            with printed.open("wb") as file:
                run = warm.begin(words, ROOT, environment, file.fileno())
            if self.preferred:
                prefer(run.pid)
            late = Event()
            watchdog = Timer(self.seconds, lambda: (late.set(), os.killpg(run.pid, signal.SIGKILL)))
            watchdog.start()
            status = run.wait()
            watchdog.cancel()
            output = printed.read_text(errors="replace")
            if late.is_set():
                self._give_up(output)
            seconds = time.monotonic() - began
            report = Path(name, "report.json")
            hosts = json.loads(report.read_text())["hosts"] if report.exists() else {}
        return Outcome(status, output, seconds, hosts.get("@local", {}))

    def _give_up(self, output: str) -> NoReturn:
        """Fail with the output of a run that takes too long, and the servers that have exited."""
        ended = [each.name for each in self.cluster.processes if not each.alive]
        dead = f"; no longer running: {', '.join(ended)}" if ended else ""
        pytest.fail(f"no end after {self.seconds} s{dead}; it printed:\n{output}")

    def verify(self, only: str = "", **data: Any) -> dict[str, Any]:
        """`gpufleet verify` on the cluster: check -> outcome, code, message; `only`: its -k."""
        with TemporaryDirectory(prefix="gpufleet-test-") as name:
            inventory, found = Path(name, "inventory.py"), Path(name, "found.json")
            self.write_inventory(inventory, data)
            words = [PYINFRA.with_name("gpufleet"), "verify", inventory, "--json", found]
            words += ["--limit", "gpu_cluster"] if self.nodes else []
            words += ["-k", only] if only else []
            warm.ended(words, ROOT, os.environ, SECONDS)
            checks: dict[str, Any] = json.loads(found.read_text())["hosts"]["@local"]["checks"]
        return checks

    def judge(self, *checks: str, **data: Any) -> dict[str, tuple[str, str]]:
        """`gpufleet doctor` on the cluster: check -> verdict, and what it read or found."""
        with TemporaryDirectory(prefix="gpufleet-test-") as name:
            inventory = Path(name, "inventory.py")
            self.write_inventory(inventory, data)
            words = [PYINFRA.with_name("gpufleet"), "doctor", inventory, "--json"]
            done = subprocess.run(
                [*words, "--check", ",".join(checks)],
                cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=SECONDS,
            )  # fmt: skip
        assert done.stdout, done.stderr
        found = json.loads(done.stdout)["clusters"]["@local"]["checks"]
        return {each["check"]: (each["verdict"], each["cause"] or each["read"]) for each in found}

    @property
    def core(self) -> Any:
        return client.CoreV1Api(self.cluster.api)

    def releases(self) -> dict[str, str]:
        """Name -> status of the newest revision, from the labels of Helm's Secrets."""
        newest: dict[str, tuple[int, str]] = {}
        for secret in self.core.list_secret_for_all_namespaces(label_selector="owner=helm").items:
            labels = secret.metadata.labels
            entry = (int(labels["version"]), labels["status"])
            newest[labels["name"]] = max(newest.get(labels["name"], (0, "")), entry)
        return {name: status for name, (_, status) in newest.items()}


def prefer(pid: int, nice: int = -10) -> None:
    """Set the priority of a process' session, if the kernel schedules by session.

    Only root can; without it, measured times include the load of other processes.
    """
    share = Path(f"/proc/{pid}/autogroup")
    if os.geteuid() == 0 and share.exists():
        share.write_text(str(nice))


def choices_of(chart: str, kubernetes: str) -> list[str]:
    """Versions of a chart that gpufleet chooses, oldest first, up to this Kubernetes."""
    minors = (f"1.{number}" for number in range(18, version_tuple(kubernetes)[1] + 1))
    found = {choose_charts(load_charts(), minor)[chart].version for minor in minors}
    return sorted(found, key=version_tuple)
