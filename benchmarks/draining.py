"""The controller that is measured: plans a simulated fleet and drains nodes of it, by the product.

Reads its job as JSON from stdin. Steps on hosts do nothing: the nodes are simulated. What the hosts
say of themselves is a captured answer, parsed for each, and the facts of a converged host.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from benchmarks.simulated import machine
from benchmarks.timing import ROOT
from gpufleet.facts.model import NodeFacts
from gpufleet.facts.parse import parse_node_facts
from gpufleet.kube.operations.access import KubeAccess
from gpufleet.node.catalog import load_catalog
from gpufleet.node.settings import load_settings
from gpufleet.role.place import NO_PLACE
from gpufleet.upgrade.look import Health, Seen, view_of
from gpufleet.upgrade.models import HostView, Plan
from gpufleet.upgrade.operations.children import Children, Result
from gpufleet.upgrade.operations.clusters import NodeAt, find_nodes
from gpufleet.upgrade.operations.draining import drain
from gpufleet.upgrade.operations.opening import open_nodes
from gpufleet.upgrade.operations.preparing import prepare
from gpufleet.upgrade.operations.run import Run
from gpufleet.upgrade.operations.store import Store
from gpufleet.upgrade.order import Order
from gpufleet.upgrade.plan import make_plan
from gpufleet.upgrade.settings import UpgradeSettings
from gpufleet.upgrade.states import Event, State
from tests.unit.hosts import converged_host

CAPTURE = ROOT / "tests/unit/facts/captures/ubuntu2204-kubelet-handwritten.txt"
TARGET = "580.178.04"
DATA = {"toolkit_enabled": False, "driver_hold": True, "driver_version": TARGET}
SETTINGS = UpgradeSettings.model_validate(
    {"drain": "all", "max_unavailable": "50%", "wave": "100%"}
)


class NoHosts:
    """Steps that succeed at once."""

    def step(
        self, step: str, hosts: Sequence[str], version: str, *, reboot: str
    ) -> dict[str, Result]:
        return dict.fromkeys(hosts, Result(True))

    def end(self) -> None:
        """Nothing is under way."""


def views_of(names: Sequence[str], text: str) -> list[HostView]:
    """What each host says of itself, read as the step `look` does."""
    settings, problems = load_settings(DATA)
    assert settings, problems
    catalog, facts = load_catalog(), converged_host()

    def view(name: str) -> HostView:
        parse_node_facts(text.splitlines())
        mine: NodeFacts = replace(facts, machine_id=machine(name), kubelet=True)
        health = Health(gpus=len(mine.gpus))
        seen = Seen(name, settings, mine, catalog, mine.clock, {}, NO_PLACE, health)
        return replace(view_of(seen, "", ""), refusals=())  # it lacks files of a real host

    return [view(name) for name in names]


def planned(names: Sequence[str], access: KubeAccess) -> tuple[Plan, dict[str, NodeAt]]:
    """The plan of a run over these hosts, all of which are nodes."""
    views = views_of(names, CAPTURE.read_text())
    views, places = find_nodes(views, [access], {name: (name,) for name in names})
    plan = make_plan(views, SETTINGS)
    left = [f"{each.name}: {each.reason}" for each in plan.left_out]
    assert not left, left[0]
    return plan, places


def drained(run: Run, hosts: Sequence[str]) -> tuple[float, float]:
    """Seconds to prepare these hosts, and from the first cordon to the last pod gone."""
    began = time.monotonic()
    prepare(run, hosts)
    prepared = time.monotonic() - began
    while left := run.progress.of(State.READY, State.DRAINING):
        drain(run, left)
    wrong = run.progress.of(State.LEAVING)
    assert not wrong, run.progress.reasons[wrong[0]]
    entries = list(run.store.entries())
    first = min(each.time for each in entries if each.event == Event.DRAIN_BEGAN.value)
    last = max(each.time for each in entries if each.event == Event.DRAINED.value)
    return prepared, last - first


def main(job: dict[str, Any]) -> None:
    """Plan, drain, and write the figures to the file that the job names."""
    os.environ["XDG_STATE_HOME"] = job["records"]
    access = KubeAccess(job["kubeconfig"])
    began = time.monotonic()
    plan, places = planned(job["nodes"], access)
    seconds = time.monotonic() - began
    nodes = {name: place.as_dict() for name, place in places.items()}
    hosts = {name: SETTINGS.model_dump() for name in plan.by_name}
    store = Store.create(Order("simulated", "/", hosts=hosts, nodes=nodes), plan)
    clusters = open_nodes(places, store.name, print)
    settings = dict.fromkeys(plan.by_name, SETTINGS)
    run = Run(store, plan, settings, cast(Children, NoHosts()), print, clusters)
    run.write("begun")
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
