"""Shared by the tests of toolkit."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import Any

from gpufleet.facts.model import (
    CdiSpec,
    ManagedFile,
    NodeFacts,
    Package,
    Runtime,
    Service,
)
from gpufleet.node.catalog import load_catalog
from gpufleet.toolkit.plan import ToolkitPlan, plan_toolkit
from gpufleet.toolkit.settings import ToolkitSettings
from tests.unit.hosts import bare_host, record_of

DAEMON = "/etc/docker/daemon.json"
CONFIG = "/etc/containerd/config.toml"
DRIVER = "580.159.03"
NAMES = load_catalog().toolkit.packages.names


CRI_1 = 'version = 2\n[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]\n'


def file(path: str, content: str | None, mode: int = 0o644) -> dict[str, ManagedFile]:
    digest = hashlib.sha256(content.encode()).hexdigest() if content is not None else ""
    return {path: ManagedFile(path, content, mode, sha256=digest)}


def runtime(name: Any, version: str, **changes: Any) -> dict[str, Runtime]:
    paths = {"docker": DAEMON, "containerd": CONFIG, "crio": "/etc/crio/crio.conf"}
    there = Runtime(name, version, f"{name}.service", paths[name], running=True)
    return {name: replace(there, **changes)}


def docker_host(content: str | None = None, **changes: Any) -> NodeFacts:
    return bare_host(
        files=file(DAEMON, content),
        runtimes=runtime("docker", changes.pop("version", "27.5.1"), **changes),
    )


def containerd_host(content: str | None, version: str) -> NodeFacts:
    return bare_host(files=file(CONFIG, content), runtimes=runtime("containerd", version))


def plan(facts: NodeFacts, **settings: Any) -> ToolkitPlan:
    return plan_toolkit(ToolkitSettings(**settings), facts, load_catalog())


def installed(facts: NodeFacts, version: str) -> NodeFacts:
    packages = {name: Package(name, f"{version}-1", "amd64") for name in NAMES}
    return replace(facts, packages=packages, holds=frozenset(NAMES))


def carried_out(facts: NodeFacts, done: ToolkitPlan) -> NodeFacts:
    """The host after the plan: packages, files, record, CDI spec, enabled units."""
    files = dict(facts.files)
    for change in (change for each in done.runtimes for change in each.changes):
        files |= file(change.path, change.after, change.mode)
    after = installed(facts, done.target)
    return replace(
        after,
        files=files,
        modules={"nvidia": DRIVER},
        provenance=record_of(toolkit=done.record(DRIVER, {}).as_json()),
        cdi_specs=(CdiSpec(done.cdi.path, DRIVER),),
        services={
            **facts.services,
            **{unit: Service(unit, "loaded", "active", "enabled") for unit in done.cdi.units},
        },
    )


def codes(done: ToolkitPlan) -> list[str]:
    return [finding.code for finding in done.findings if finding.code.startswith("GF4")]
