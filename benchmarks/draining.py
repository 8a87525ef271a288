"""The measured controller: gpufleet's code plans an upgrade and drains simulated nodes.

Reads its job as JSON from stdin. Steps on hosts do nothing, because the nodes are simulated. Each
host answers with one captured text, which is parsed per host, and has the facts of a converged
host.
"""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.simulated import machine
from benchmarks.timing import ROOT
from gpufleet.facts.model import NodeFacts
from gpufleet.facts.parse import parse_node_facts
from gpufleet.host.upgrade_settings import UpgradeSettings
from gpufleet.host.upgrade_state import HostState, Phase
from gpufleet.kube.operations.access import KubeAccess
from gpufleet.node.catalog import load_catalog
from gpufleet.node.settings import load_node_settings
from gpufleet.role.place import NO_PLACE
from gpufleet.upgrade.look import LookedHost, view_of
from gpufleet.upgrade.models import HostView, Plan
from gpufleet.upgrade.operations.acts import drain_act, prepare_act
from gpufleet.upgrade.operations.clusters import NodeAt, find_nodes, open_clusters
from gpufleet.upgrade.operations.result import StepResult
from gpufleet.upgrade.operations.run import UpgradeRun
from gpufleet.upgrade.plan import make_plan
from tests.unit.hosts import converged_host

CAPTURE = ROOT / "tests/unit/facts/captures/ubuntu2204-kubelet-handwritten.txt"
TARGET = "580.178.04"
WORKERS = 64  # as a run has them
DATA = {"toolkit_enabled": False, "driver_version": TARGET, "driver_allow_change": True}
SETTINGS = UpgradeSettings.model_validate(
    {"drain": "all", "max_unavailable": "50%", "wave": "100%"}
)


class NoHosts:
    """Steps that succeed immediately. Records the time at which each host enters a phase."""

    def __init__(self) -> None:
        self.written: list[tuple[float, Phase]] = []

    def step(self, name: str, step: str, version: str, reboot: str) -> StepResult:
        return StepResult(True)

    def write(self, name: str, state: HostState) -> None:
        self.written.append((time.monotonic(), state.phase))


def views_of(names: Sequence[str], text: str) -> list[HostView]:
    """The view of each host, parsed as the step `look` does."""
    settings, problems = load_node_settings(DATA)
    assert settings, problems
    catalog, facts = load_catalog(), converged_host()

    def view(name: str) -> HostView:
        parse_node_facts(text.splitlines())
        mine: NodeFacts = replace(facts, machine_id=machine(name), kubelet=True)
        seen = LookedHost(name, settings, mine, catalog, mine.clock, {}, NO_PLACE, len(mine.gpus))
        return replace(view_of(seen, ""), refusals=())  # it lacks files of a real host

    return [view(name) for name in names]


def planned(names: Sequence[str], access: KubeAccess) -> tuple[Plan, dict[str, NodeAt]]:
    """The plan of a run over these hosts, all of which are nodes."""
    views = views_of(names, CAPTURE.read_text())
    views, places = find_nodes(views, [access], {name: (name,) for name in names})
    plan = make_plan(views, SETTINGS, name="simulated")
    left = [f"{each.name}: {each.reason}" for each in plan.left_out]
    assert not left, left[0]
    return plan, places


def drained(run: UpgradeRun, hosts: Sequence[str]) -> tuple[float, float]:
    """Seconds to prepare these hosts, and from the first cordon to the last pod gone."""
    began = time.monotonic()
    with ThreadPoolExecutor(WORKERS) as pool:
        list(pool.map(lambda name: prepare_act(run, name), hosts))
    prepared = time.monotonic() - began
    began = time.monotonic()
    while left := [name for name in hosts if name not in run.idle]:
        drain_act(run, left)
        wrong = [name for name in left if run.states[name].phase is Phase.PASSED]
        assert not wrong, run.states[wrong[0]].why
    return prepared, time.monotonic() - began


def main(job: dict[str, Any]) -> None:
    """Plan, drain, and write the figures to the file that the job names."""
    access = KubeAccess(job["kubeconfig"])
    began = time.monotonic()
    plan, places = planned(job["nodes"], access)
    seconds = time.monotonic() - began
    clusters = open_clusters(places, plan.run, plan.hosts.keys(), print)
    run = UpgradeRun(plan, dict.fromkeys(plan.hosts, SETTINGS), NoHosts(), print, clusters)
    for cluster in set(clusters.values()):
        cluster.look()  # as before hosts are taken out of service
    cpu = time.process_time()
    prepared, evicted = drained(run, job["nodes"][: job["drained"]])
    cpu = time.process_time() - cpu
    found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found
    answer = {"plan": seconds, "prepare": prepared, "evict": evicted, "cpu": cpu}
    Path(job["answer"]).write_text(json.dumps({**answer, "memory": int(found[1]) / 1024}))


if __name__ == "__main__":
    main(json.load(sys.stdin))
