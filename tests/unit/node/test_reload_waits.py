"""Plans of hosts whose containers have GPUs: steps that would make systemd reload units wait."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hosts import converged_host, plan_for, record_of

from gpufleet.core.distributions import Systemd
from gpufleet.driver.files import PERSISTENCE_OVERRIDE
from gpufleet.facts import distribution
from gpufleet.facts.model import GpuProcess, ManagedFile, NodeFacts, Service
from gpufleet.node.catalog import load_catalog
from gpufleet.node.plan import NodePlan, plan_node
from gpufleet.node.removal import plan_removal
from gpufleet.node.settings import load_node_settings

# https://github.com/NVIDIA/nvidia-container-toolkit/issues/1227 (2025-08-07)
IN_DOCKER = f"/system.slice/docker-{'a' * 64}.scope"
TRAIN = GpuProcess(4242, "python3", ("/dev/nvidia0", "/dev/nvidiactl"), "", IN_DOCKER)
XORG = GpuProcess(
    2001, "Xorg", ("/dev/nvidia0",), "", "/user.slice/user-1000.slice/session-2.scope"
)
IDLE_CONTAINER = {"gpu_containers": 1}
WITHOUT = "/usr/bin/nvidia-persistenced --user nvidia-persistenced --no-persistence-mode --verbose"
UNIT = "nvidia-persistenced.service"
EXPORTER = {"exporter_enabled": True, "exporter_mode": "systemd"}


def ubuntus_unit(**changes: object) -> NodeFacts:
    """A converged host whose persistence daemon Ubuntu's unit starts."""
    service = Service(UNIT, "loaded", "active", "enabled", WITHOUT)
    return replace(converged_host(), services={UNIT: service}, **changes)


def plan_of(facts: NodeFacts, **data: object) -> NodePlan:
    settings, problems = load_node_settings({"toolkit_enabled": False, **data})
    assert settings is not None, problems
    return plan_node(settings, facts, load_catalog(), facts.clock)


def codes(plan: NodePlan) -> list[str]:
    return [finding.code for finding in plan.all_findings]


@pytest.mark.parametrize(
    "work",
    [
        {"gpu_processes": (TRAIN,)},
        {"gpu_processes": (replace(TRAIN, cgroup=""),)},  # its container is not known
        {"gpu_pods": 1},
        IDLE_CONTAINER,
    ],
)
def test_the_persistence_daemon_waits(work: dict[str, object]) -> None:
    plan = plan_for(ubuntus_unit(**work), driver_version="580.159.03")
    assert plan.action == "none"
    (finding,) = [each for each in plan.findings if each.code == "GF537"]
    assert not finding.blocks
    assert "nvidia-persistenced" in finding.message
    assert plan.services == ("nvidia-persistenced",)  # its file is written, for the next boot
    written = ManagedFile(PERSISTENCE_OVERRIDE, "[Service]\n")
    again = plan_for(
        ubuntus_unit(files={PERSISTENCE_OVERRIDE: written}, **work), driver_version="580.159.03"
    )
    assert again.services == ()
    assert [each.code for each in again.findings if each.code == "GF537"]


@pytest.mark.parametrize("work", [{}, {"gpu_processes": (XORG,)}])
def test_without_containers_nothing_waits(work: dict[str, object]) -> None:
    plan = plan_for(ubuntus_unit(**work), driver_version="580.159.03")
    assert plan.services == ("nvidia-persistenced",)
    assert "GF537" not in [each.code for each in plan.findings]


@pytest.mark.parametrize(("systemd", "work", "said"), [
    (219, IDLE_CONTAINER, True), (219, {}, False), (239, IDLE_CONTAINER, False),
    (None, IDLE_CONTAINER, False),
])  # fmt: skip
def test_package_scripts_that_reach_systemd_beside_containers_are_a_finding(
    monkeypatch: pytest.MonkeyPatch, systemd: int | None, work: dict[str, object], said: bool
) -> None:
    """nvidia-container-toolkit's scripts reload it: packaging/rpm/SPECS of its repository."""
    version = Systemd(version=systemd, source="https://a (read 2026-11-27)") if systemd else None
    facts = replace(converged_host(), **work)
    assert facts.distribution
    changed = facts.distribution.model_copy(update={"systemd": version})
    monkeypatch.setattr(distribution, "_distribution", lambda *_: changed)
    assert ("GF538" in codes(plan_of(facts, toolkit_enabled=True))) == said
    assert "GF538" not in codes(plan_of(facts, exporter_enabled=False))


def test_a_removal_beside_containers_is_a_finding() -> None:
    record = record_of(driver={}, toolkit={"added": ["nvidia-container-toolkit"]})
    facts = replace(converged_host(), gpu_containers=1, provenance=record)
    settings, _ = load_node_settings({})
    assert settings is not None
    found = plan_removal(settings, facts, load_catalog()).findings
    assert "GF538" in [each.code for each in found]
