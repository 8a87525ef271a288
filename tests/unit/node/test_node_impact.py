"""The impact in a host's plan: interruptions, package sources and files."""

from __future__ import annotations

from dataclasses import replace

import jsonschema
import pytest

from gpufleet.driver.files import PERSISTENCE_OVERRIDE, PREFERENCES_FILE
from gpufleet.facts.model import ManagedFile, ModuleOnDisk, NodeFacts, Runtime, Service
from gpufleet.node.catalog import load_catalog
from gpufleet.node.impact import impact_of
from gpufleet.node.plan import plan_node
from gpufleet.node.settings import load_node_settings
from gpufleet.role.impact import Impact
from gpufleet.toolkit.runtime_result import RUNTIME_CONFIG_PATH
from tests.unit.hosts import bare_host, record_of
from tests.unit.run.report_setup import SCHEMA

MIRROR = "http://mirror.example/cuda/"
LIST = "/etc/apt/sources.list.d/cuda-ubuntu2204-x86_64.list"
DOCKER = Runtime("docker", "27.5.1", "docker.service", "/etc/docker/daemon.json", running=True)
RUNS = Service("docker.service", "loaded", "active", "enabled")


def impact(facts: NodeFacts, *, may_reboot: bool = False, **data: object) -> Impact:
    settings, problems = load_node_settings(data)
    assert settings is not None, problems
    plan = plan_node(settings, facts, load_catalog(), facts.clock)
    found = impact_of(plan, may_reboot=may_reboot)
    jsonschema.validate(found.as_json(), SCHEMA["$defs"]["impact"] | {"$defs": SCHEMA["$defs"]})
    return found


def with_docker(containers: int) -> NodeFacts:
    runtime = replace(DOCKER, containers=containers, live_restore=True)
    files = {DOCKER.config_path: ManagedFile(DOCKER.config_path, None)}
    return bare_host(files=files, runtimes={"docker": runtime}, services={"docker.service": RUNS})


def test_a_runtime_that_restarts_comes_with_the_containers_that_it_runs() -> None:
    assert impact(with_docker(3)).restarts == {"docker.service": 3}
    assert impact(bare_host()).restarts == {}


def test_every_file_is_named_also_those_that_only_the_run_can_fill() -> None:
    files = impact(with_docker(0), toolkit_cdi=True).files
    assert {
        LIST,
        PREFERENCES_FILE,
        PERSISTENCE_OVERRIDE,
        RUNTIME_CONFIG_PATH,
        DOCKER.config_path,
    } <= set(files)
    assert "/usr/share/keyrings/cuda-archive-keyring.gpg" in files
    assert len(files) == len(set(files))


def test_a_source_that_moves_is_named_with_both_urls_and_no_login() -> None:
    text = f"deb [signed-by=/x.gpg] {MIRROR.replace('//', '//me:pw@')} /\n"
    there = bare_host(
        files={LIST: ManagedFile(LIST, text)}, provenance=record_of(files={LIST: "0"})
    )
    before, after = impact(there).sources["cuda-ubuntu2204-x86_64"]
    assert before is not None
    assert (before.endswith("@mirror.example/cuda/"), "pw" in before) == (True, False)
    assert after.startswith("https://developer.download.nvidia.com/")
    new = impact(bare_host(), driver_repo_url=MIRROR).sources["cuda-ubuntu2204-x86_64"]
    assert new == (None, f"{MIRROR}ubuntu2204/x86_64/")


@pytest.mark.parametrize(("may", "reboot"), [(True, "possible"), (False, "manual")])
def test_a_reboot_is_possible_only_where_the_settings_allow_it(may: bool, reboot: str) -> None:
    assert impact(bare_host(), may_reboot=may).reboot == reboot
    assert impact(bare_host(), may_reboot=may, driver_enabled=False).reboot == "none"


def test_a_loaded_driver_of_another_version_is_unloaded() -> None:
    module = ModuleOnDisk("550.163.01", "NVIDIA")
    loaded = bare_host(modules={"nvidia": "550.163.01"}, module_on_disk=module, gpu_pods=2)
    found = impact(loaded, driver_branch="580", driver_allow_change=True)
    assert (found.unloads, found.pods) == (True, 2)
    assert not impact(bare_host(), driver_branch="580").unloads


def test_a_host_without_steps_has_no_impact() -> None:
    assert impact(bare_host(), driver_enabled=False, toolkit_enabled=False) == Impact()
