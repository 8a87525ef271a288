"""How a runtime's new configuration takes effect: by a reload, a restart, or neither. Pure."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from gpufleet.core.visible import Count
from gpufleet.formats.edits import has_path
from gpufleet.formats.json_text import JSON_FORMAT
from gpufleet.toolkit.config import docker
from gpufleet.toolkit.findings import runtimes as found
from gpufleet.toolkit.runtime_model import Activation, Context, RuntimePlan


def with_activation(plan: RuntimePlan, context: Context) -> RuntimePlan:
    """How the change takes effect, without stopping containers unless that is allowed."""
    runtime = context.runtime
    plan = replace(plan, started=context.service.started)
    need, reason = _needed(plan, context)
    if need == "none" or not runtime.running or any(note.blocks for note in plan.findings):
        return plan
    activation = plan.activation
    # the command that restarts checks again whether containers run
    spare = need == "restart" and runtime.name == "docker" and not runtime.live_restore
    spare = spare and not context.settings.allow_disruption
    if not context.settings.restart:
        why = "toolkit_restart is off"
    elif spare and runtime.containers > 0:
        there = f"{Count(runtime.containers):container is|containers are}"
        why = f"{there} running, which it would stop, as live-restore is disabled"
        activation = "reload" if plan.change else "none"
    else:
        return replace(plan, activation=need, reason=reason, spare=spare)
    note = found.RESTART_NEEDED(unit=runtime.unit, reason=reason, why=why)
    notes = (*plan.findings, note)
    return replace(plan, activation=activation, reason=reason, postponed=True, findings=notes)


def _needed(plan: RuntimePlan, context: Context) -> tuple[Activation, str]:
    """docker loads runtimes on a reload, but detects CDI and `--gpus` only when it starts."""
    earlier = context.pending
    if earlier:
        return "restart", earlier
    if context.runtime.name != "docker":
        return ("restart", f"{plan.config} changes") if plan.change else ("none", "")
    if context.first:
        return "restart", "docker detects the toolkit, for `--gpus`, only when it starts"
    if plan.change is None:
        return "none", ""
    if not plan.serves:
        return "restart", "a reload does not take settings away"
    before, after = (_parsed_docker(text) for text in (plan.change.before, plan.change.after))
    if has_path(after, docker.CDI) != has_path(before, docker.CDI):
        return "restart", "docker reads features.cdi only when it starts"
    gone = [path for path in (("runtimes", "nvidia"), docker.DEFAULT) if has_path(before, path)]
    if any(not has_path(after, path) for path in gone):
        return "restart", "a reload does not take settings away"
    return "reload", "daemon.json changes"


def _parsed_docker(text: str | None) -> dict[str, Any]:
    return JSON_FORMAT.parse((text or "").lstrip("\ufeff"))
