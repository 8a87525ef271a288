"""Shared by the tests of removal plan."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import Any

from gpufleet.driver.files import MODPROBE_FILE
from gpufleet.facts.model import ManagedFile, NodeFacts, Package, Runtime
from gpufleet.node.catalog import load_catalog
from gpufleet.node.removal import RemovalPlan, plan_removal
from gpufleet.node.settings import load_node_settings
from gpufleet.node.unfinished import NOTHING_LEFT, Unfinished
from tests.unit.hosts import bare_host, record_of

DAEMON = "/etc/docker/daemon.json"
RUNTIME = {
    "config": DAEMON,
    "changes": {"created": True, "skeleton": "", "edits": []},
}
RECORD: dict[str, Any] = {
    "driver": {"packages": {"a": "1", "b": "1"}, "added": ["a", "lib"], "held": True},
    "toolkit": {
        "packages": {"t": "1"},
        "added": ["t"],
        "held": False,
        "cdi": {"path": "/etc/cdi/nvidia.yaml", "created": True},
        "runtimes": {"docker": RUNTIME},
    },
    "files": {MODPROBE_FILE: hashlib.sha256(b"ours").hexdigest()},
}


def host(**changes: Any) -> NodeFacts:
    docker = Runtime("docker", "27.5.1", "docker.service", DAEMON, running=True)
    facts = bare_host(
        provenance=record_of(**RECORD),
        modules={"nvidia": "580.159.03"},
        runtimes={"docker": docker},
        files={DAEMON: ManagedFile(DAEMON, None)},
        packages={name: Package(name, "1", "amd64") for name in ("a", "b", "lib", "t")},
    )
    return replace(facts, **changes)


def plan(facts: NodeFacts, left: Unfinished = NOTHING_LEFT, **data: Any) -> RemovalPlan:
    settings, problems = load_node_settings(data)
    assert settings is not None, problems
    return plan_removal(settings, facts, load_catalog(), left)


def codes(done: RemovalPlan) -> set[str]:
    return {finding.code for finding in done.findings}
