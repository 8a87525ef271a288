"""A new role: with its name in the list, the core plans, shows and removes it."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any, ClassVar

import pytest
from rich.console import Console

from gpufleet.core import node_roles as names
from gpufleet.core.findings import Finding
from gpufleet.core.settings import RoleSettings
from gpufleet.driver.findings import host as findings
from gpufleet.facts.model import Package
from gpufleet.facts.record import RoleEntry
from gpufleet.node.catalog import load_catalog
from gpufleet.node.host_checks import check_record
from gpufleet.node.plan import describe_plan, plan_node
from gpufleet.node.record_merge import merge_record
from gpufleet.node.removal import plan_removal
from gpufleet.node.settings import NodeSettings, load_node_settings
from gpufleet.node.unfinished import Unfinished
from gpufleet.role.listing import node_roles
from gpufleet.role.protocol import Role, RoleContext
from gpufleet.role.result import RoleResult
from gpufleet.run.report import HostReport
from gpufleet.run.report_table import show_report
from tests.unit.hosts import converged_host, record_of


class CopySettings(RoleSettings):
    prefix = "gdrcopy_"

    enabled: bool = True


class CopyEntry(RoleEntry):
    role: ClassVar[str] = "gdrcopy"


@dataclass(frozen=True)
class CopyPlan:
    driver: str | None


class CopyRole(Role[CopySettings, CopyPlan, CopyEntry]):
    """Only the required members of a role."""

    name = "gdrcopy"
    settings = CopySettings
    entry = CopyEntry

    def plan(
        self, settings: CopySettings, context: RoleContext
    ) -> tuple[CopyPlan | None, tuple[Finding, ...]]:
        if not settings.enabled:
            return None, ()
        return CopyPlan(context.driver), (findings.OPERATOR_DRIVER(),)

    def converged(self, plan: CopyPlan, driver: str | None) -> bool:
        return False

    def steps(self, plan: CopyPlan, context: RoleContext) -> list[str]:
        return [f"gdrcopy: build the module for {plan.driver}"]

    def describe(self, plan: CopyPlan) -> dict[str, Any]:
        return {"driver": plan.driver}

    def versions(self, plan: CopyPlan, entry: CopyEntry) -> tuple[str | None, str | None]:
        return entry.version, "2.5"


@pytest.fixture
def role(monkeypatch: pytest.MonkeyPatch) -> Iterator[CopyRole]:
    """A CopyRole that is the last one in the list of roles."""
    rooms = {part: ModuleType(f"gpufleet.gdrcopy{part}") for part in ("", ".role", ".settings")}
    made = CopyRole()
    rooms[".role"].ROLE = made  # type: ignore[attr-defined]
    rooms[".settings"].CopySettings = CopySettings  # type: ignore[attr-defined]
    for part, module in rooms.items():
        monkeypatch.setitem(sys.modules, f"gpufleet.gdrcopy{part}", module)
    monkeypatch.setitem(names.NODE_ROLES, "gdrcopy", "when wanted")
    node_roles.cache_clear()
    yield made
    node_roles.cache_clear()


def settings(**data: Any) -> NodeSettings:
    found, problems = load_node_settings(data)
    assert found, problems
    return found


def test_it_is_planned_and_shown(role: CopyRole) -> None:
    facts = converged_host()
    plan = plan_node(settings(), facts, load_catalog(), facts.clock)
    assert plan.of(role) == CopyPlan("580.159.03")  # the result of the driver role
    assert describe_plan(plan)["steps"][-1] == "gdrcopy: build the module for 580.159.03"
    assert describe_plan(plan)["gdrcopy"] == {"driver": "580.159.03"}
    assert plan.all_findings[-1] == findings.OPERATOR_DRIVER()
    assert not plan.converged("580.159.03")
    off = plan_node(settings(gdrcopy_enabled=False), facts, load_catalog(), facts.clock)
    assert off.of(role) is describe_plan(off)["gdrcopy"] is None


def test_its_settings_are_read(role: CopyRole) -> None:
    _, (problem,) = load_node_settings({"gdrcopy_enabled": "yes"})
    assert "gdrcopy_enabled" in problem.message


def test_its_entry_is_written_and_checked(role: CopyRole) -> None:
    result = RoleResult(CopyEntry(version="2.5"), {"/etc/gdr": "1"}, "2.5")
    record = merge_record({}, result.as_json(), "now")
    assert record
    assert record["gdrcopy"] == {"version": "2.5"}
    assert record["history"][-1] == {
        "time": "now",
        "driver": None,
        "toolkit": None,
        "gdrcopy": "2.5",
    }
    damaged = replace(converged_host(), provenance=record_of(gdrcopy={"version": 2.5}))
    assert [finding.code for finding in check_record(damaged)] == ["GF557"]


def test_its_packages_and_files_go(role: CopyRole) -> None:
    entry = {"version": "2.5", "packages": {"gdrcopy": "2.5-1"}, "added": ["gdrcopy"]}
    package = Package("gdrcopy", "2.5-1", "amd64")
    facts = replace(converged_host(), packages={"gdrcopy": package}, provenance=record_of())
    on = replace(facts, provenance=record_of(gdrcopy=entry, files={"/etc/gdr": "1"}))
    done = plan_removal(settings(), on, load_catalog())
    assert (done.packages, done.paths) == (("gdrcopy",), ("/etc/gdr",))
    assert dict(done.roles)["gdrcopy"].movement == {"before": "2.5", "after": None}
    begun = Unfinished(True, {"gdrcopy": ("gdrcopy",)}, {"gdrcopy": ("gdrcopy",)})
    left = plan_removal(settings(), facts, load_catalog(), begun)
    assert left.packages == ("gdrcopy",)
    assert left.held == ("gdrcopy",)


def test_it_has_a_column(role: CopyRole) -> None:
    host = HostReport("gpu-01", status="changed")
    host.roles["gdrcopy"] = {"before": None, "after": "2.5"}
    out = io.StringIO()
    show_report(Console(file=out, width=200), [host])
    assert "gdrcopy" in out.getvalue()
    assert "none -> 2.5" in out.getvalue()
    data = host.as_dict()
    assert "gdrcopy" not in data  # until the schema has it
    assert data["plan"]["versions"] == {"gdrcopy": {"before": None, "after": "2.5"}}
