"""Runs deploys for a cluster in memory, without a process."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyinfra
import pytest
from memory_cluster import NAMESPACES, MemoryApi, MemoryHelm
from pyinfra.api import BaseStateCallback, Config, Host, Inventory, State
from pyinfra.api.connect import connect_all
from pyinfra.api.deploy import add_deploy
from pyinfra.api.exceptions import PyinfraError
from pyinfra.api.operations import run_ops

from gpufleet.gpu_stack.operations import releases
from gpufleet.gpu_stack.operations.removal import current_removal
from gpufleet.gpu_stack.operations.stack import current_stack
from gpufleet.helm.operations import cluster
from gpufleet.helm.operations.cluster import RunCluster
from gpufleet.helm.release import CrdStep, ReleasePlan
from gpufleet.kube.facts import ObjectRef
from gpufleet.roles.cluster import apply_roles
from gpufleet.roles.removal.cluster import remove_stack
from gpufleet.run.report import HostReport
from gpufleet.run.reporting import RunReport


class Steps(BaseStateCallback):
    """Notes the names of the operations as they begin."""

    def __init__(self, done: list[str]) -> None:
        self.done = done

    def operation_start(self, state: State, op_hash: str) -> None:  # type: ignore[override]
        self.done.append(" ".join(sorted(state.get_op_meta(op_hash).names)))


class ClusterBench:
    """Runs deploys for one cluster."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.done: list[str] = []
        self.fails = ""  # words of a call of helm
        self.recreated: list[ObjectRef] = []  # workloads that an upgrade recreates
        self.crds: list[CrdStep] = []  # that a release writes first
        self.said: list[str] = []
        self.nodes: dict[str, dict[str, Any]] = {}  # gpu_nodes of the inventory, and their data
        self.api = MemoryApi(self.done)
        receivers = base64.b64encode(b"[{name: default}]").decode()
        about = {"name": "pager", "namespace": "monitoring"}
        body = {"metadata": about, "data": {"receivers.yaml": receivers}}
        self.api.put(f"{NAMESPACES}/monitoring/secrets", body)
        self.lease = SimpleNamespace(deletes=False, give_back=lambda: None)
        monkeypatch.setattr(cluster, "ClusterApi", lambda access: self.api)
        monkeypatch.setattr(cluster, "take_lease", self._take_lease)
        monkeypatch.setattr(cluster, "find_helm", lambda *about: MemoryHelm(self.api).program)
        monkeypatch.setattr(cluster, "Helm", self._helm)
        monkeypatch.setattr(Host, "noop", lambda _, why: self._needless(why))
        monkeypatch.setattr(releases, "logger", SimpleNamespace(info=self.said.append))
        monkeypatch.setattr(RunCluster, "_complete", lambda _, plan: self._with_chart(plan))

    def _with_chart(self, plan: ReleasePlan) -> ReleasePlan:
        gone = [ref for ref in self.recreated if ref.name == plan.release.name]
        ready = replace(plan.release.ready, operands=None)
        plan = replace(plan, release=replace(plan.release, ready=ready))
        plan = replace(plan, recreate=tuple(gone), crds=tuple(self.crds))
        return replace(plan, archive=Path("chart.tgz"))

    def _helm(self, program: Any, kubeconfig: Any, controller: str, lease: Any) -> MemoryHelm:
        return MemoryHelm(self.api, lease, self.fails)

    def _take_lease(self, api: Any, wait: float, say: Callable[[str], None]) -> Any:
        say(f"waits up to {wait:.0f} s for the lock")
        return self.lease

    def _needless(self, why: str) -> None:
        if pyinfra.state.is_executing:
            self.done.append(f"  - {why}")

    def run(self, deploy: Callable[[], None], **data: Any) -> tuple[list[str], HostReport]:
        """The steps and writes of one run, and its report."""
        quick = {"fake_delay": 0.0, "fake_delay_jitter": 0.0, **data}
        groups = {"gpu_cluster": (["@fake/cluster"], {}), "gpu_nodes": ([*self.nodes.items()], {})}
        hosts = ["@fake/cluster", *self.nodes]
        inventory = Inventory((hosts, quick), {}, **groups)
        state = State(inventory, Config())
        state.limit_hosts = [inventory.get_host("@fake/cluster")]
        report = RunReport(state)
        state.add_callback_handler(report)
        state.add_callback_handler(Steps(self.done))
        connect_all(state)
        self.done.clear()
        try:
            add_deploy(state, deploy)
            run_ops(state)
        except PyinfraError:  # no hosts remain
            assert state.failed_hosts
        (part,) = report.gather()
        return [re.sub(r"sha256-\w+", "sha256-…", line) for line in self.done], part


def install() -> None:
    """deploys/gpu_cluster.py."""
    stack = current_stack()
    if stack:
        apply_roles(stack)


def take_away() -> None:
    """deploys/remove.py, for a cluster."""
    removal = current_removal()
    if removal:
        remove_stack(removal)
