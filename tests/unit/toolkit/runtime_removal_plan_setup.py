"""Shared by the tests of runtime removal plan."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from gpufleet.facts.model import NodeFacts
from gpufleet.node.catalog import load_catalog
from gpufleet.toolkit.runtime_model import RuntimePlan
from gpufleet.toolkit.runtime_removal import plan_runtime_removal
from gpufleet.toolkit.settings import ToolkitSettings
from tests.unit.toolkit.toolkit_setup import carried_out, file, plan


def removal(facts: NodeFacts, **settings: Any) -> RuntimePlan:
    (done,) = plan_runtime_removal(ToolkitSettings(**settings), facts, load_catalog())
    return done


def reported(done: RuntimePlan) -> list[tuple[str, bool]]:
    return [(finding.code, finding.blocks) for finding in done.findings]


def edited(facts: NodeFacts, path: str, text: str | None) -> NodeFacts:
    return replace(facts, files=facts.files | file(path, text))


def provisioned(facts: NodeFacts, **settings: Any) -> NodeFacts:
    return carried_out(facts, plan(facts, **settings))
