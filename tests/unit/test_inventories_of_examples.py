"""Every inventory of `examples/` loads, has valid settings, and gets a plan."""

from __future__ import annotations

import ast
import re
import shlex
from functools import cache
from pathlib import Path

import pytest
from click.testing import CliRunner

from gpufleet.cli import main
from gpufleet.facts.model import NodeFacts, OsRelease
from gpufleet.node.catalog import load_catalog
from gpufleet.node.plan import plan_node
from gpufleet.node.settings import load_node_settings, settings_problems
from gpufleet.upgrade.settings import load_upgrade_settings
from gpufleet.verify.inventory import Target, load_targets
from tests.unit.hosts import bare_host

EXAMPLES = sorted((Path(__file__).resolve().parents[2] / "examples").glob("*.py"))
CATALOG = load_catalog()
CENTOS7 = OsRelease("centos", "7", ("rhel", "fedora"), "", "CentOS Linux 7 (Core)")


def facts_of(target: Target) -> NodeFacts:
    """A bare host: CentOS 7 if the example says so."""
    if "gpu_centos7" in target.groups:
        return bare_host(os=CENTOS7, package_manager="yum")
    return bare_host()


@cache
def loaded(path: Path) -> list[Target]:
    return load_targets(str(path))


@pytest.fixture(params=EXAMPLES, ids=lambda path: path.name)
def targets(request: pytest.FixtureRequest) -> list[Target]:
    return loaded(request.param)


def test_every_setting_is_taken(targets: list[Target]) -> None:
    for target in targets:
        assert settings_problems(target.groups, target.data) == [], target.name
        if not target.is_cluster:
            assert load_upgrade_settings(target.data)[1] == [], target.name


def test_a_bare_host_gets_a_plan_without_blockers(targets: list[Target]) -> None:
    for target in targets:
        if target.is_cluster:
            continue
        # the plan of a node of a cluster needs its other hosts: tests/hosts/test_kubeadm.py
        settings, _ = load_node_settings({**target.data, "kubernetes_enabled": False})
        assert settings is not None
        facts = facts_of(target)
        plan = plan_node(settings, facts, CATALOG, facts.clock)
        assert [found for found in plan.all_findings if found.blocks] == [], target.name
        assert plan.parts, target.name


def test_hundred_hosts_are_in_ten_racks() -> None:
    (path,) = (path for path in EXAMPLES if path.name == "racks.py")
    found = loaded(path)
    racks = [target.data["rack"] for target in found]
    assert (len(found), {racks.count(rack) for rack in racks}) == (100, {10})


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_the_commands_at_the_top_exist(path: Path) -> None:
    about = ast.get_docstring(ast.parse(path.read_text())) or ""
    lines = re.findall(r"^ *(gpufleet .*?)(?: +#.*)?$", about, re.MULTILINE)
    assert lines
    for line in lines:
        done = CliRunner().invoke(main, [*shlex.split(line)[1:], "--help"])
        assert done.exit_code == 0, done.output
