"""The plan of the exporter: mode, packages or image, and convergence."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from exporters import (
    CATALOG,
    DROP_IN,
    EL7,
    NOW,
    exporter_for,
    findings_of,
    installed,
    plan_for,
    reported,
    settings,
    with_docker,
)

from gpufleet.driver.role import ROLE as DRIVER
from gpufleet.exporter.counters import fields_of
from gpufleet.exporter.files import UNIT, UNIT_FILE
from gpufleet.exporter.role import ROLE as EXPORTER_ROLE
from gpufleet.facts.model import Keyring, ManagedFile, NodeFacts, Package, Service
from gpufleet.node.plan import plan_node, plan_steps
from gpufleet.node.removal import plan_removal
from tests.unit.hosts import bare_host, converged_host


def test_nothing_unless_asked_for() -> None:
    plan = plan_node(settings(exporter_enabled=False), converged_host(), CATALOG, NOW)
    assert (plan.of(EXPORTER_ROLE), findings_of(plan)) == (None, ())


def test_packages_and_services_on_a_new_host() -> None:
    plan = plan_for(converged_host())
    assert plan.of(EXPORTER_ROLE) is not None
    assert plan.of(EXPORTER_ROLE).mode == "systemd"
    dcgm, exporter = plan.of(EXPORTER_ROLE).packages
    assert (dcgm.version, dcgm.needed) == ("4.6.0", True)
    assert "datacenter-gpu-manager-4-cuda13" in dcgm.packages
    assert (exporter.packages, exporter.branch) == (("datacenter-gpu-manager-exporter",), "4.8.3")
    assert plan.of(EXPORTER_ROLE).units == ("nvidia-dcgm.service", "nvidia-dcgm-exporter.service")
    assert reported(plan) == [("GF587", "info")]
    listed = [step for step in plan_steps(plan) if step.startswith("exporter: ")]
    assert len(listed) == 5
    assert listed[-1].endswith("nvidia-dcgm-exporter.service on 127.0.0.1:9400")


def test_the_drop_in_says_where_what_and_whom() -> None:
    plan = exporter_for(
        converged_host(), exporter_listen="::", exporter_counters="DCGM_FI_DEV_SERIAL, label, x"
    )
    counters, unit = plan.wanted_files
    assert counters.path == "/etc/dcgm-exporter/gpufleet-counters.csv"
    assert unit.path == DROP_IN
    (start,) = [line for line in str(unit.content).splitlines() if "/usr/bin" in line]
    assert start == (
        "ExecStart=/usr/bin/dcgm-exporter --address [::]:9400 --collectors "
        "/etc/dcgm-exporter/gpufleet-counters.csv --remote-hostengine-info localhost:5555"
    )
    assert plan.reachable == "[::1]:9400"


def test_a_settled_host_has_nothing_to_do() -> None:
    facts = converged_host()
    facts = installed(facts, exporter_for(facts))
    plan = exporter_for(facts)
    assert plan.converged, plan
    left = [step for step in plan_steps(plan_for(facts)) if "exporter" in step]
    assert left == ["exporter: record what is installed"]


@pytest.mark.parametrize(
    "change",
    [
        {"exporter_port": 9401},
        {"exporter_listen": "0.0.0.0"},
        {"exporter_counters": "DCGM_FI_DEV_GPU_TEMP, gauge, x"},
        {"exporter_version": "4.8.2"},
        {"exporter_hold": True, "exporter_mode": "systemd", "exporter_dcgm_version": "4.5.3"},
    ],
)
def test_a_changed_setting_is_work(change: dict[str, Any]) -> None:
    facts = converged_host()
    facts = installed(facts, exporter_for(facts))
    assert not exporter_for(facts, **change).converged


def test_what_a_killed_run_left_is_taken_up() -> None:
    """Without a record, the drop-in shows that the services are gpufleet's, and they restart."""
    facts = converged_host()
    before = facts.provenance
    facts = replace(installed(facts, exporter_for(facts)), provenance=before)
    plan = exporter_for(facts)
    assert plan.restart
    assert not plan.changes_packages


@pytest.mark.parametrize("unit", ["nvidia-dcgm.service", "nvidia-dcgm-exporter.service"])
@pytest.mark.parametrize("state", [("inactive", "enabled"), ("active", "disabled")])
def test_a_service_that_would_not_run_is_started(unit: str, state: tuple[str, str]) -> None:
    facts = converged_host()
    facts = installed(facts, exporter_for(facts))
    facts = replace(facts, services={**facts.services, unit: Service(unit, "loaded", *state)})
    assert exporter_for(facts).restart


def test_another_driver_means_another_start() -> None:
    facts = converged_host()
    facts = installed(facts, exporter_for(facts), driver="550.163.01")
    assert exporter_for(facts).restart


def test_newer_packages_stay_unless_a_version_is_asked_for() -> None:
    facts = converged_host()
    facts = installed(facts, exporter_for(facts))
    newer = {n: replace(p, version="1:4.7.0-1") for n, p in facts.packages.items() if "-4-" in n}
    name = "datacenter-gpu-manager-exporter"
    newer[name] = replace(facts.packages[name], version="4.9.0.1-1")
    facts = replace(facts, packages={**facts.packages, **newer})
    assert exporter_for(facts).converged
    assert exporter_for(facts, exporter_version="4.8.3").changes_packages


@pytest.mark.parametrize(("version", "needed"), [("4.8.3-1", False), ("4.8.3.2-1", False),
                                                 ("4.8.30-1", True)])  # fmt: skip
def test_a_version_stands_for_those_that_continue_it(version: str, needed: bool) -> None:
    facts = converged_host()
    facts = installed(facts, exporter_for(facts))
    name = "datacenter-gpu-manager-exporter"
    packages = {**facts.packages, name: replace(facts.packages[name], version=version)}
    plan = exporter_for(replace(facts, packages=packages), exporter_version="4.8.3")
    assert [family.needed for family in plan.packages] == [False, needed]


def test_el7_has_no_packages_but_a_container() -> None:
    facts = with_docker(replace(converged_host(), os=EL7, package_manager="yum"))
    plan = exporter_for(facts, driver_branch="550")
    assert (plan.mode, plan.packages, plan.units) == ("docker", (), (UNIT,))
    assert "glibc" in plan.reasons[1]
    (unit,) = plan.wanted_files
    assert unit.path == UNIT_FILE
    assert "dcgm-exporter:4.6.0-4.8.3-distroless --address 127.0.0.1:9400" in str(unit.content)
    refused = plan_for(facts, driver_branch="550", exporter_mode="systemd")
    (finding,) = findings_of(refused)
    assert finding.code == "GF583"
    assert "glibc" in finding.message
    nothing = plan_for(replace(facts, runtimes={}), driver_branch="550")
    assert [f.code for f in findings_of(nothing)] == ["GF583"]
    assert "docker is not installed" in findings_of(nothing)[0].message


def test_docker_without_the_runtime() -> None:
    facts = with_docker(converged_host())
    assert exporter_for(facts, exporter_mode="docker").mode == "docker"
    plan = plan_for(facts, exporter_mode="docker", toolkit_enabled=False)
    assert "runtime nvidia" in plan.blockers[0].message
    config = ManagedFile("/etc/docker/daemon.json", '{"runtimes": {"nvidia": {"path": "x"}}}')
    facts = replace(facts, files={config.path: config})
    assert exporter_for(facts, exporter_mode="docker", toolkit_enabled=False).mode == "docker"


def test_the_container_shares_the_network_of_a_docker_that_remaps_users() -> None:
    """userns-remap, which CIS asks for: moby/moby#25771, docker/docker-bench-security#175."""
    plan = exporter_for(with_docker(converged_host()), exporter_mode="docker")
    assert " --network host --userns host " in str(plan.wanted_files[-1].content)


def test_the_container_has_its_counters_and_no_more_rights_than_it_needs() -> None:
    plan = exporter_for(
        with_docker(converged_host()),
        exporter_mode="docker",
        exporter_counters="DCGM_FI_DEV_GPU_TEMP, gauge, x",
        exporter_image="registry.example:5000/dcgm@sha256:ab",
    )
    text = str(plan.wanted_files[1].content)
    path = "/etc/dcgm-exporter/gpufleet-counters.csv"
    assert f"--volume {path}:{path}:ro registry.example:5000/dcgm@sha256:ab --address" in text
    assert "--cap-drop ALL --cap-add SYS_ADMIN --security-opt no-new-privileges" in text
    assert f"--collectors {path}\n" in text


def test_our_list_is_for_the_hosts_exporter_and_gpus() -> None:
    def fields(facts: NodeFacts, **data: str) -> frozenset[str]:
        wanted = {"exporter_counters": "gpufleet", "driver_allow_change": True, **data}
        plan = exporter_for(facts, **wanted)
        files = {file.path: str(file.content) for file in plan.wanted_files}
        text = files.get("/etc/dcgm-exporter/gpufleet-counters.csv")
        return fields_of(text) if text else frozenset()

    host = converged_host()
    assert "DCGM_FI_DEV_GPU_UTIL" in fields(host)
    pascal = replace(host, pci=tuple(replace(gpu, device=0x15F8) for gpu in host.gpus))
    assert "DCGM_FI_DEV_RETIRED_DBE" in fields(pascal)
    assert "DCGM_FI_PROF_SM_ACTIVE" not in fields(pascal)
    unknown = replace(host, pci=tuple(replace(gpu, device=0xFFF0) for gpu in host.gpus))
    assert {"DCGM_FI_DEV_RETIRED_DBE", "DCGM_FI_PROF_SM_ACTIVE"} <= fields(unknown)
    assert fields(host, exporter_version="4.9.0") == frozenset()


def test_the_other_mode_is_retired() -> None:
    facts = with_docker(converged_host())
    facts = installed(facts, exporter_for(facts))
    assert exporter_for(facts).before == "4.8.3.002"
    plan = exporter_for(facts, exporter_mode="docker")
    assert plan.before is None  # the version of the packages says nothing about a container
    assert plan.retire == ("nvidia-dcgm.service", "nvidia-dcgm-exporter.service")
    assert not plan.converged


def test_nvidias_repository_is_not_added_for_its_sake() -> None:
    plan = plan_for(converged_host(), driver_enabled=False, exporter_mode="systemd")
    assert [f.code for f in plan.blockers] == ["GF583"]
    assert "repository" in plan.blockers[0].message


def test_nvidias_repository_is_used_where_it_is_there_already() -> None:
    facts = converged_host()
    known = plan_node(settings(), facts, CATALOG, NOW).of(DRIVER)
    assert known is not None
    assert known.repository.source is not None
    assert known.repository.repository is not None
    source, repository = known.repository.source, known.repository.repository
    facts = replace(
        facts,
        files={**facts.files, source.path: ManagedFile(source.path, str(source.content))},
        keyrings=(Keyring(repository.keyring, repository.key_fingerprints),),
    )
    plan = exporter_for(facts, driver_enabled=False)
    assert plan.mode == "systemd"
    assert plan.packages[0].repository.repository


def test_without_a_driver_there_is_nothing_to_collect() -> None:
    plan = plan_for(with_docker(bare_host()), driver_enabled=False)
    assert "no NVIDIA driver" in plan.blockers[0].message


def test_another_generation_of_dcgm_is_not_pushed_out() -> None:
    name = "datacenter-gpu-manager"
    facts = replace(converged_host(), packages={name: Package(name, "1:3.3.9", "amd64")})
    plan = plan_for(facts, exporter_mode="systemd")
    assert [f.code for f in plan.blockers] == ["GF589"]
    assert exporter_for(with_docker(facts)).mode == "docker"


def test_an_insecure_version_is_warned_of_and_taken() -> None:
    plan = plan_for(converged_host(), exporter_version="4.8.2")
    assert plan.of(EXPORTER_ROLE) is not None
    assert ("GF586", "warning") in reported(plan)


def test_an_unknown_version_needs_its_dcgm() -> None:
    assert ("GF585", "blocker") in reported(plan_for(converged_host(), exporter_version="5.0.1"))


def test_removal_stops_what_is_ours() -> None:
    facts = converged_host()
    assert plan_removal(settings(), facts, CATALOG).of(EXPORTER_ROLE).units == ()
    names = ["datacenter-gpu-manager-exporter"]
    ours = installed(facts, exporter_for(facts), added=names)
    plan = plan_removal(settings(), ours, CATALOG)
    assert plan.of(EXPORTER_ROLE).units == ("nvidia-dcgm-exporter.service", "nvidia-dcgm.service")
    assert "datacenter-gpu-manager-exporter" in plan.packages


@pytest.mark.parametrize("changed", [True, False])
def test_a_new_unit_file_waits_for_containers(changed: bool) -> None:
    """systemd would have to reload its units, and containers could lose their GPUs."""
    facts = converged_host()
    facts = installed(facts, exporter_for(facts))
    exporter = facts.services["nvidia-dcgm-exporter.service"]
    services = {**facts.services, exporter.name: replace(exporter, changed=changed)}
    busy = replace(facts, services=services, gpu_containers=1)
    port = 9400 if changed else 9401
    plan = exporter_for(busy, exporter_port=port)
    assert (plan.restart, plan.waits, bool(plan.files)) == (False, True, not changed)
    assert ("GF537", "warning") in reported(plan_for(busy, exporter_port=port))
    assert exporter_for(replace(busy, gpu_containers=0), exporter_port=port).restart
    assert not exporter_for(replace(busy, services=facts.services)).waits
