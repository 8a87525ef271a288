"""Other collectors, listeners on its port and kubelets stop the exporter; its own parts do not."""

from __future__ import annotations

from dataclasses import replace

import pytest
from exporters import (
    CATALOG,
    CONTAINER,
    ENGINE,
    EXPORTER,
    POD,
    exporter_for,
    findings_of,
    installed,
    plan_for,
    reported,
    settings,
    with_docker,
)

from gpufleet.exporter.role import ROLE as EXPORTER_ROLE
from gpufleet.facts.model import Daemon, GpuProcess, Listener
from gpufleet.node.removal import plan_removal
from tests.unit.hosts import converged_host


@pytest.mark.parametrize(
    ("daemon", "words"),
    [
        (ENGINE, "DCGM's host engine (process 811, of nvidia-dcgm.service)"),
        (EXPORTER, "dcgm-exporter (process 812, of nvidia-dcgm-exporter.service)"),
        (POD, "dcgm-exporter (process 97, of a pod of Kubernetes)"),
        (Daemon(5, "starship", POD.cgroup), "Alibaba's renamed dcgm-exporter (process 5, of a pod"),
        (
            Daemon(6, "telemetry", f"/docker/{CONTAINER}"),
            "telemetry (process 6, in container 0123456789ab)",
        ),
    ],
)
def test_another_collector_keeps_it_away(daemon: Daemon, words: str) -> None:
    plan = plan_for(replace(converged_host(), collectors=(daemon,)))
    assert plan.of(EXPORTER_ROLE) is None
    (finding,) = plan.blockers
    assert finding.code == "GF581"
    assert words in finding.message
    modest = plan_for(replace(converged_host(), collectors=(daemon,)), exporter_enabled="auto")
    assert (modest.of(EXPORTER_ROLE), reported(modest)) == (None, [("GF581", "warning")])


def test_our_own_and_another_one() -> None:
    facts = converged_host()
    facts = installed(facts, exporter_for(facts))
    (finding,) = plan_for(replace(facts, collectors=(*facts.collectors, POD))).blockers
    assert "97" in finding.message
    assert "811" not in finding.message


@pytest.mark.parametrize(
    ("there", "wanted", "taken"),
    [
        ("127.0.0.1", "127.0.0.1", True),
        ("0.0.0.0", "10.0.0.4", True),
        ("::", "127.0.0.1", True),
        ("127.0.0.1", "0.0.0.0", True),
        ("127.0.0.1", "10.0.0.4", False),
        ("::1", "127.0.0.1", False),
        ("0.0.0.0", "::1", False),
    ],
)
def test_a_port_that_is_taken(there: str, wanted: str, taken: bool) -> None:
    nginx = Daemon(44, "nginx", "/system.slice/nginx.service")
    facts = replace(converged_host(), listeners=(Listener(there, 9400, nginx),))
    plan = plan_for(facts, exporter_listen=wanted)
    assert [f.code for f in plan.blockers] == (["GF582"] if taken else [])
    assert plan_for(facts, exporter_listen=wanted, exporter_port=9401).blockers == ()
    if taken:
        assert "nginx (process 44, of nginx.service)" in plan.blockers[0].message


def test_our_own_listener_takes_no_port() -> None:
    facts = converged_host()
    facts = installed(facts, exporter_for(facts))
    facts = replace(facts, listeners=(Listener("127.0.0.1", 9400, EXPORTER),))
    assert exporter_for(facts).converged


def test_beside_a_kubelet_only_when_enabled() -> None:
    facts = replace(converged_host(), kubelet=True)
    modest = plan_for(facts, exporter_enabled="auto")
    assert (modest.of(EXPORTER_ROLE), reported(modest)) == (None, [("GF580", "info")])
    assert plan_for(facts).of(EXPORTER_ROLE) is not None
    left = installed(converged_host(), exporter_for(converged_host()))
    finding = findings_of(plan_for(replace(left, kubelet=True), exporter_enabled="auto"))[0]
    assert "is not changed" in finding.message


def test_our_own_container_is_known_by_its_id() -> None:
    facts = with_docker(converged_host())
    facts = installed(facts, exporter_for(facts, exporter_mode="docker"))
    assert exporter_for(facts, exporter_mode="docker").converged
    assert exporter_for(facts).mode == "docker", "auto keeps what runs"
    other = Daemon(9, "dcgm-exporter", "/docker/" + "ab" * 32)
    assert plan_for(replace(facts, collectors=(other,))).blockers


def test_our_exporter_is_no_gpu_work() -> None:
    """gpufleet stops its own exporter for a change of the driver. Any other exporter is work."""
    facts = with_docker(converged_host("550.163.01"))
    facts = installed(facts, exporter_for(facts, exporter_mode="docker"))
    facts = replace(facts, gpu_processes=(GpuProcess(812, "dcgm-exporter", ("/dev/nvidia0",)),))
    wanted = {"driver_version": "580.159.03", "exporter_mode": "docker"}
    assert plan_for(facts, **wanted).blockers == ()
    assert plan_removal(settings(), facts, CATALOG).blockers == ()
    other = replace(facts, collectors=(POD,), gpu_processes=(GpuProcess(97, "dcgm-exporter"),))
    assert plan_for(other, **wanted).blockers
    assert plan_removal(settings(), other, CATALOG).blockers
