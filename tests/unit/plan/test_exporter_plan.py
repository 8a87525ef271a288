"""The plan of the exporter: where it runs, from what, who keeps it away, when it is settled."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hosts import bare_host, converged_host

from gpufleet.catalog.load import load_catalog
from gpufleet.facts.model import (
    Daemon,
    GpuProcess,
    Keyring,
    Listener,
    ManagedFile,
    NodeFacts,
    OsRelease,
    Package,
    Runtime,
    Service,
)
from gpufleet.plan.exporter_files import CIDFILE, UNIT, UNIT_FILE, digest, drop_in
from gpufleet.plan.exporter_model import ExporterPlan
from gpufleet.plan.node import NodePlan, plan_node, steps
from gpufleet.plan.removal import plan_removal
from gpufleet.settings import NodeSettings, load_settings

CATALOG = load_catalog()
DROP_IN = drop_in(CATALOG)
NOW = 1_790_000_000
CONTAINER = "0123456789abcdef" * 4
ENGINE = Daemon(811, "nv-hostengine", "/system.slice/nvidia-dcgm.service")
EXPORTER = Daemon(812, "dcgm-exporter", "/system.slice/nvidia-dcgm-exporter.service")
POD = Daemon(97, "dcgm-exporter", f"/kubepods.slice/cri-containerd-{'fe' * 32}.scope")
DOCKER = Runtime("docker", "28.3.3", "docker.service", "/etc/docker/daemon.json", running=True)
EL7 = OsRelease("centos", "7", ("rhel", "fedora"), "", "CentOS Linux 7")


def settings(**data: Any) -> NodeSettings:
    found, problems = load_settings({"exporter_enabled": True, **data})
    assert found is not None, problems
    return found


def plan_for(facts: NodeFacts, **data: Any) -> NodePlan:
    return plan_node(settings(**data), facts, CATALOG, NOW)


def exporter_for(facts: NodeFacts, **data: Any) -> ExporterPlan:
    plan = plan_for(facts, **data)
    assert plan.exporter is not None, plan.exporter_findings
    return plan.exporter


def told(plan: NodePlan) -> list[tuple[str, str]]:
    return [(finding.code, finding.severity.value) for finding in plan.exporter_findings]


def with_docker(facts: NodeFacts) -> NodeFacts:
    config = ManagedFile(DOCKER.config_path, None)
    return replace(
        facts,
        runtimes={**facts.runtimes, "docker": DOCKER},
        files={config.path: config, **facts.files},
    )


def installed(facts: NodeFacts, plan: ExporterPlan, **record: Any) -> NodeFacts:
    """The host once the plan was carried out."""
    versions = dict.fromkeys(plan.choice.dcgm_packages, f"1:{plan.choice.dcgm}-1")
    versions["datacenter-gpu-manager-exporter"] = f"{plan.choice.version}.002-1"
    packages = (
        {name: Package(name, version, "amd64") for name, version in versions.items()}
        if plan.mode == "systemd"
        else {}
    )
    entry = {
        "mode": plan.mode,
        "configuration": digest(plan.wanted_files),
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
        provenance={**(facts.provenance or {}), "exporter": entry},
    )


def test_nothing_unless_asked_for() -> None:
    plan = plan_node(settings(exporter_enabled=False), converged_host(), CATALOG, NOW)
    assert (plan.exporter, plan.exporter_findings) == (None, ())


def test_packages_and_services_on_a_new_host() -> None:
    plan = plan_for(converged_host())
    assert plan.exporter is not None
    assert plan.exporter.mode == "systemd"
    dcgm, exporter = plan.exporter.packages
    assert (dcgm.prefix, dcgm.exact, dcgm.needed) == ("4.6.0", True, True)
    assert "datacenter-gpu-manager-4-cuda13" in dcgm.names
    assert (exporter.names, exporter.prefix) == (("datacenter-gpu-manager-exporter",), "4.8.3")
    assert plan.exporter.units == ("nvidia-dcgm.service", "nvidia-dcgm-exporter.service")
    assert told(plan) == [("GF587", "info")]
    listed = [step for step in steps(plan) if step.startswith("exporter: ")]
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
    assert steps(plan_for(facts)) == [s for s in steps(plan_for(facts)) if "exporter" not in s]


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
def test_a_changed_wish_is_work(change: dict[str, Any]) -> None:
    facts = converged_host()
    facts = installed(facts, exporter_for(facts))
    assert not exporter_for(facts, **change).converged


def test_what_a_killed_run_left_is_taken_up() -> None:
    """No record yet: the drop-in says whose the running services are, and they start anew."""
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
    assert plan.exporter is None
    (finding,) = plan.exporter_blockers
    assert finding.code == "GF581"
    assert words in finding.message
    assert plan.blockers == (), "driver and toolkit are looked after all the same"
    modest = plan_for(replace(converged_host(), collectors=(daemon,)), exporter_enabled="auto")
    assert (modest.exporter, told(modest)) == (None, [("GF581", "warning")])


def test_our_own_and_another_one() -> None:
    facts = converged_host()
    facts = installed(facts, exporter_for(facts))
    (finding,) = plan_for(replace(facts, collectors=(*facts.collectors, POD))).exporter_blockers
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
    assert [f.code for f in plan.exporter_blockers] == (["GF582"] if taken else [])
    assert plan_for(facts, exporter_listen=wanted, exporter_port=9401).exporter_blockers == ()
    if taken:
        assert "nginx (process 44, of nginx.service)" in plan.exporter_blockers[0].message


def test_our_own_listener_takes_no_port() -> None:
    facts = converged_host()
    facts = installed(facts, exporter_for(facts))
    facts = replace(facts, listeners=(Listener("127.0.0.1", 9400, EXPORTER),))
    assert exporter_for(facts).converged


def test_beside_a_kubelet_only_when_told() -> None:
    facts = replace(converged_host(), kubelet=True)
    modest = plan_for(facts, exporter_enabled="auto")
    assert (modest.exporter, told(modest)) == (None, [("GF580", "info")])
    assert plan_for(facts).exporter is not None
    left = installed(converged_host(), exporter_for(converged_host()))
    finding = plan_for(replace(left, kubelet=True), exporter_enabled="auto").exporter_findings[0]
    assert "left as it is" in finding.message


def test_el7_has_no_packages_but_a_container() -> None:
    facts = with_docker(replace(converged_host(), os=EL7, package_manager="yum"))
    plan = exporter_for(facts, driver_branch="550")
    assert (plan.mode, plan.packages, plan.units) == ("docker", (), (UNIT,))
    assert "glibc" in plan.reasons[1]
    (unit,) = plan.wanted_files
    assert unit.path == UNIT_FILE
    assert "dcgm-exporter:4.6.0-4.8.3-distroless --address 127.0.0.1:9400" in str(unit.content)
    (finding,) = plan_for(facts, driver_branch="550", exporter_mode="systemd").exporter_blockers
    assert finding.code == "GF583"
    assert "glibc" in finding.message
    nothing = plan_for(replace(facts, runtimes={}), driver_branch="550")
    assert [f.code for f in nothing.exporter_blockers] == ["GF584"]
    assert "docker is not installed" in nothing.exporter_blockers[0].message


def test_docker_without_the_runtime() -> None:
    facts = with_docker(converged_host())
    assert exporter_for(facts, exporter_mode="docker").mode == "docker"
    plan = plan_for(facts, exporter_mode="docker", toolkit_enabled=False)
    assert "runtime nvidia" in plan.exporter_blockers[0].message
    config = ManagedFile("/etc/docker/daemon.json", '{"runtimes": {"nvidia": {"path": "x"}}}')
    facts = replace(facts, files={config.path: config})
    assert exporter_for(facts, exporter_mode="docker", toolkit_enabled=False).mode == "docker"


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


def test_our_own_container_is_known_by_its_id() -> None:
    facts = with_docker(converged_host())
    facts = installed(facts, exporter_for(facts, exporter_mode="docker"))
    assert exporter_for(facts, exporter_mode="docker").converged
    assert exporter_for(facts).mode == "docker", "auto keeps what runs"
    other = Daemon(9, "dcgm-exporter", "/docker/" + "ab" * 32)
    assert plan_for(replace(facts, collectors=(other,))).exporter_blockers


def test_the_other_mode_is_retired() -> None:
    facts = with_docker(converged_host())
    facts = installed(facts, exporter_for(facts))
    plan = exporter_for(facts, exporter_mode="docker")
    assert plan.retire == ("nvidia-dcgm.service", "nvidia-dcgm-exporter.service")
    assert not plan.converged


def test_nvidias_repository_is_not_added_for_its_sake() -> None:
    plan = plan_for(converged_host(), driver_enabled=False, exporter_mode="systemd")
    assert [f.code for f in plan.exporter_blockers] == ["GF583"]
    assert "repository" in plan.exporter_blockers[0].message


def test_nvidias_repository_is_used_where_it_is_there_already() -> None:
    facts = converged_host()
    known = plan_node(settings(), facts, CATALOG, NOW).driver
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
    assert plan.repository is not None


def test_without_a_driver_there_is_nothing_to_collect() -> None:
    plan = plan_for(with_docker(bare_host()), driver_enabled=False)
    assert "no NVIDIA driver" in plan.exporter_blockers[0].message


def test_another_generation_of_dcgm_is_not_pushed_out() -> None:
    name = "datacenter-gpu-manager"
    facts = replace(converged_host(), packages={name: Package(name, "1:3.3.9", "amd64")})
    plan = plan_for(facts, exporter_mode="systemd")
    assert [f.code for f in plan.exporter_blockers] == ["GF589"]
    assert exporter_for(with_docker(facts)).mode == "docker"


def test_an_insecure_version_is_warned_of_and_taken() -> None:
    plan = plan_for(converged_host(), exporter_version="4.8.2")
    assert plan.exporter is not None
    assert ("GF586", "warning") in told(plan)


def test_an_unknown_version_needs_its_dcgm() -> None:
    assert ("GF585", "blocker") in told(plan_for(converged_host(), exporter_version="5.0.1"))


def test_our_exporter_is_no_gpu_work() -> None:
    """It holds the GPUs, and is stopped for a driver change; another's is work."""
    facts = with_docker(converged_host("550.163.01"))
    facts = installed(facts, exporter_for(facts, exporter_mode="docker"))
    facts = replace(facts, gpu_processes=(GpuProcess(812, "dcgm-exporter", ("/dev/nvidia0",)),))
    wanted = {"driver_version": "580.159.03", "exporter_mode": "docker"}
    assert plan_for(facts, **wanted).blockers == ()
    assert plan_removal(settings(), facts, CATALOG).blockers == ()
    other = replace(facts, collectors=(POD,), gpu_processes=(GpuProcess(97, "dcgm-exporter"),))
    assert plan_for(other, **wanted).blockers
    assert plan_removal(settings(), other, CATALOG).blockers


def test_removal_stops_what_is_ours() -> None:
    facts = converged_host()
    assert plan_removal(settings(), facts, CATALOG).exporter == ()
    ours = installed(facts, exporter_for(facts), added=["datacenter-gpu-manager-exporter"])
    plan = plan_removal(settings(), ours, CATALOG)
    assert plan.exporter == ("nvidia-dcgm-exporter.service", "nvidia-dcgm.service")
    assert "datacenter-gpu-manager-exporter" in plan.packages
