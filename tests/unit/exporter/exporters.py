"""Hosts with and without an exporter, made of facts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from gpufleet.core.findings import Finding
from gpufleet.exporter.files import CIDFILE, exporter_drop_in, files_digest
from gpufleet.exporter.plan import ExporterPlan
from gpufleet.exporter.role import ROLE as EXPORTER_ROLE
from gpufleet.facts.model import (
    Daemon,
    ManagedFile,
    NodeFacts,
    OsRelease,
    Package,
    Runtime,
    Service,
)
from gpufleet.node.catalog import load_catalog
from gpufleet.node.plan import NodePlan, plan_node
from gpufleet.node.settings import NodeSettings, load_node_settings
from tests.unit.hosts import record_of

CATALOG = load_catalog()
DROP_IN = exporter_drop_in(CATALOG)
NOW = 1_790_000_000
CONTAINER = "0123456789abcdef" * 4
ENGINE = Daemon(811, "nv-hostengine", "/system.slice/nvidia-dcgm.service")
EXPORTER = Daemon(812, "dcgm-exporter", "/system.slice/nvidia-dcgm-exporter.service")
POD = Daemon(97, "dcgm-exporter", f"/kubepods.slice/cri-containerd-{'fe' * 32}.scope")
DOCKER = Runtime("docker", "28.3.3", "docker.service", "/etc/docker/daemon.json", running=True)
EL7 = OsRelease("centos", "7", ("rhel", "fedora"), "", "CentOS Linux 7")


def settings(**data: Any) -> NodeSettings:
    found, problems = load_node_settings({"exporter_enabled": True, **data})
    assert found is not None, problems
    return found


def plan_for(facts: NodeFacts, **data: Any) -> NodePlan:
    return plan_node(settings(**data), facts, CATALOG, NOW)


def findings_of(plan: NodePlan) -> tuple[Finding, ...]:
    """The findings about the exporter in a node's plan."""
    return next((part.findings for part in plan.parts if part.role is EXPORTER_ROLE), ())


def exporter_for(facts: NodeFacts, **data: Any) -> ExporterPlan:
    plan = plan_for(facts, **data)
    found = plan.of(EXPORTER_ROLE)
    assert found is not None, findings_of(plan)
    return found


def reported(plan: NodePlan) -> list[tuple[str, str]]:
    return [(finding.code, finding.severity.value) for finding in findings_of(plan)]


def with_docker(facts: NodeFacts) -> NodeFacts:
    config = ManagedFile(DOCKER.config_path, None)
    return replace(
        facts,
        runtimes={**facts.runtimes, "docker": DOCKER},
        files={config.path: config, **facts.files},
    )


def installed(facts: NodeFacts, plan: ExporterPlan, **record: Any) -> NodeFacts:
    """The host after its plan was carried out."""
    versions = dict.fromkeys(plan.choice.dcgm_packages, f"1:{plan.choice.dcgm}-1")
    versions["datacenter-gpu-manager-exporter"] = f"{plan.choice.version}.002-1"
    packages = (
        {name: Package(name, version, "amd64") for name, version in versions.items()}
        if plan.mode == "systemd"
        else {}
    )
    entry = {
        "mode": plan.mode,
        "configuration": files_digest(plan.wanted_files),
        "driver": facts.loaded_driver,
        **record,
    }
    return replace(
        facts,
        packages={**facts.packages, **packages},
        holds=facts.holds | set(packages),
        files={
            **facts.files,
            **{f.path: ManagedFile(f.path, str(f.content)) for f in plan.wanted_files},
            CIDFILE: ManagedFile(CIDFILE, CONTAINER if plan.mode == "docker" else None),
        },
        services={
            **facts.services,
            **{unit: Service(unit, "loaded", "active", "enabled") for unit in plan.units},
        },
        collectors=(ENGINE, EXPORTER)
        if plan.mode == "systemd"
        else (replace(EXPORTER, cgroup=f"/system.slice/docker-{CONTAINER}.scope"),),
        provenance=record_of(**{**facts.provenance.as_json(), "exporter": entry}),
    )
