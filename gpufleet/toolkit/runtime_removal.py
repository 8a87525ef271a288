"""Removal of our settings from each configuration file, by the host's record. Pure."""

from __future__ import annotations

from dataclasses import replace

from gpufleet.core.findings import as_warnings
from gpufleet.facts.model import NodeFacts, Runtime
from gpufleet.facts.sections.services import RuntimeName
from gpufleet.formats.model import Merged
from gpufleet.toolkit.config import containerd, crio, docker
from gpufleet.toolkit.findings.config import CONFIG_INVALID
from gpufleet.toolkit.models import ToolkitCatalog
from gpufleet.toolkit.record import recorded_runtimes
from gpufleet.toolkit.runtime_change import RuntimeFile, assemble_plan, change_of, with_activation
from gpufleet.toolkit.runtime_model import ConfigChange, Context, RuntimePlan
from gpufleet.toolkit.runtime_result import keep_defined_runtime
from gpufleet.toolkit.settings import ToolkitSettings


def plan_runtime_removal(
    settings: ToolkitSettings, facts: NodeFacts, catalog: ToolkitCatalog
) -> tuple[RuntimePlan, ...]:
    """The plans that remove our settings of each recorded runtime from all its files."""
    contexts = (
        Context(key, facts.runtimes.get(key) or _gone(key, part.config), settings, facts, catalog)
        for key, part in recorded_runtimes(facts).items()
    )
    return tuple(_plan_removal(context) for context in contexts if context.files)


def _plan_removal(context: Context) -> RuntimePlan:
    targets = [_retracted(path, context) for path in context.files]
    main = context.main_path
    # the effective file is the file that the runtime reads, by default that of the last run
    targets.sort(key=lambda target: target.path != main)
    counts = next((each for each in targets if each.merged.changed), targets[0])
    plan = replace(
        assemble_plan(counts, context, serving=False),
        findings=tuple(note for target in targets for note in target.merged.notes),
        others=_changes([each for each in targets if each is not counts], context),
    )
    return with_activation(plan, context)


def without_old_files(plan: RuntimePlan, context: Context) -> RuntimePlan:
    """The plan of a runtime whose configuration path changed: clean the old file.

    A file that cannot be cleaned stays in the host's record, for a later run or the removal.
    """
    if not plan.managed:
        return plan
    ours = context.real_path(plan.config)
    old = [path for path in context.files if context.real_path(path) != ours]
    targets = [_retracted(path, context) for path in old]
    notes = as_warnings(note for target in targets for note in target.merged.notes)
    left = [target.path for target in targets if target.merged.blocked]
    return replace(
        plan,
        others=_changes(targets, context),
        earlier=tuple((path, context.record(path)) for path in left),
        findings=(*plan.findings, *notes),
    )


def _retracted(path: str, context: Context) -> RuntimeFile:
    """One file without our settings; with a blocker if that is not possible."""
    record, file = context.record(path), context.facts.files.get(path)
    if file is None or file.error:
        reason = file.error if file else "it was not among the files that were read"
        note = CONFIG_INVALID(file=path, reason=reason)
        return RuntimeFile(path, None, Merged(None, False, (note,), record))
    text = context.text(path)
    if context.runtime.name == "containerd":
        merged = containerd.unmerge_containerd(text, record, path, context.has("config-v3"))
    elif context.runtime.name == "crio":
        merged = crio.unmerge_crio(text, record, path)
    else:
        merged = docker.unmerge_docker(text, record, path, context.reads)
    if context.key in context.facts.runtimes:
        merged = keep_defined_runtime(path, merged, context)
    return RuntimeFile(path, text, merged)


def _changes(targets: list[RuntimeFile], context: Context) -> tuple[ConfigChange, ...]:
    changes = (change_of(each, context, serving=False) for each in targets)
    return tuple(change for change in changes if change)


def _gone(key: str, path: str) -> Runtime:
    """A runtime that was removed since: nothing to restart, and no parser of its configuration."""
    names: dict[str, RuntimeName] = {"docker": "docker", "crio": "crio"}
    return Runtime(names.get(key, "containerd"), "0", f"{key}.service", path, running=False)
