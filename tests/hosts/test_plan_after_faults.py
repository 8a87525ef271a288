"""After a node was broken, a run makes exactly the changes that the plan announced."""

from __future__ import annotations

import pytest
from breakages import BREAKAGES, TOOLKIT, VERSION, Breakage
from deploying import Outcome, run_deploy

from gpufleet_sandbox import Host
from tests.hosts.conftest import HostFactory
from tests.selection import some

pytestmark = [
    pytest.mark.hosts,
    pytest.mark.claim(
        "The steps that a plan names for a broken node are those of the run: 24 faults.",
        level=3,
    ),
]

# Made for a node that a person set up by hand, or repaired by no run.
NOT_HERE = {
    "package of another branch", "library of another version", "stale CDI spec",
    "second, stale CDI spec", "nvidia runtime gone from containerd",
}  # fmt: skip
REPAIRED = [one for one in BREAKAGES if one.name not in NOT_HERE]
DATA = {"driver_version": VERSION, "toolkit_version": TOOLKIT, "exporter_enabled": False}


def run(deploy: str, host: Host) -> Outcome:
    return run_deploy(deploy, [host], **DATA)


@pytest.fixture(scope="module")
def node(bare_host: HostFactory) -> Host:
    host = bare_host("debian12")
    done = run("gpu_node", host)
    assert done.returncode == 0, done.output
    return host


@pytest.mark.parametrize("breakage", some(REPAIRED, REPAIRED[::6]), ids=lambda one: one.name)
def test_a_run_takes_the_steps_of_the_plan(node: Host, breakage: Breakage) -> None:
    node.run(f"set -e\n{breakage.cause}")
    planned = run("preflight", node)
    steps = planned.report[node.name]["plan"]["steps"]
    done = run("gpu_node", node)
    assert done.returncode == planned.returncode, (planned.output, done.output)
    assert done.report[node.name]["changed"] == len(steps), (steps, done.output)
    if done.returncode or not steps:  # the run left the node as it was
        node.run(f"set -e\n{breakage.fix}")
    left = run("preflight", node)
    assert left.report[node.name]["plan"]["steps"] == [], left.output
