"""The plan of each container runtime of one host. Pure."""

from __future__ import annotations

from dataclasses import replace

from gpufleet.core.findings import Finding
from gpufleet.formats.edits import has_path, lookup_path
from gpufleet.formats.model import EditRecord, Merged
from gpufleet.toolkit.activation import with_activation
from gpufleet.toolkit.config import containerd, containerd_layers, crio, docker
from gpufleet.toolkit.config.desired import DesiredRuntime
from gpufleet.toolkit.config.layers import RUNTIME_PLACES
from gpufleet.toolkit.config.tables import parse_tables
from gpufleet.toolkit.dockerd import dockerd_options
from gpufleet.toolkit.findings import runtimes as found
from gpufleet.toolkit.findings.config import CONFIG_INVALID
from gpufleet.toolkit.models import RuntimeConfig
from gpufleet.toolkit.runtime_change import RuntimeFile, assemble_plan
from gpufleet.toolkit.runtime_layers import layers_of
from gpufleet.toolkit.runtime_model import Context, RuntimePlan
from gpufleet.toolkit.runtime_removal import without_old_files
from gpufleet.toolkit.runtime_result import RUNTIME_NAME, judge_merge

RUNTIME_BINARY = "nvidia-container-runtime"
BINARY_PATH = f"/usr/bin/{RUNTIME_BINARY}"


def plan_runtime(context: Context) -> RuntimePlan:
    """The plan of one runtime to configure. Reports findings; never raises."""
    return without_old_files(_plan(context), context)


def _plan(context: Context) -> RuntimePlan:
    generated = _generated(context)
    if generated:
        return _left_to_its_owner(generated, context)
    path, name = context.main_path, context.runtime.name
    file = context.facts.files.get(path)
    if file is None or file.error:
        reason = file.error if file else "it was not among the files that were read"
        return _untouched(path, (CONFIG_INVALID(file=path, reason=reason),), context)
    if name == "containerd":
        disabling = containerd_layers.cri_disabled_in(context.facts.texts, path)
        if disabling:
            return _untouched(path, (found.CRI_DISABLED(file=disabling),), context)
    target = {"docker": _docker, "containerd": _containerd, "crio": _crio}[name](path, context)
    target = replace(target, merged=judge_merge(target.path, target.merged, context))
    return with_activation(assemble_plan(target, context, serving=True), context)


def _desired(path: str, context: Context) -> DesiredRuntime:
    """The desired configuration by the settings, as far as the runtime's version supports it."""
    opt_in = context.has("cdi") and not context.has("cdi-default")
    return DesiredRuntime(
        file=path,
        binary=RUNTIME_BINARY if context.runtime.name == "docker" else BINARY_PATH,
        default=context.settings.default_runtime,
        cdi=context.settings.cdi and opt_in,
        layers=layers_of(context, context.facts.texts),
    )


def _docker(path: str, context: Context) -> RuntimeFile:
    text, record = context.text(path), context.record(path)
    merged = docker.merge_docker(
        text, replace(_desired(path, context), reads=context.reads), record
    )
    if not merged.blocked:
        flags = dockerd_options().exclusive_flags
        both = docker.flag_conflicts(merged.text, context.service.exec_start, flags)
        if both:
            unit = context.runtime.unit
            conflict = found.FLAG_CONFLICT(unit=unit, flags=", ".join(both), file=path)
            merged = Merged(text, False, (*merged.notes, conflict), record)
    return RuntimeFile(path, text, merged)


def _containerd(path: str, context: Context) -> RuntimeFile:
    main, record = context.text(path), context.record(path)
    v3 = context.has("config-v3")
    own = containerd.containerd_drop_in(main, path, context.has("drop-ins-merged"))
    version = 3 if v3 else 2
    if own and not _is_in(main, record):
        path, record, version = (
            own,
            context.record(own),
            containerd_layers.version_of(parse_tables(main)),
        )
    desired = replace(
        _desired(path, context),
        newest_version=context.newest_version,
        fills_maps=v3,
        systemd_cgroups=context.systemd_cgroups,
        new_version=version,
    )
    text = context.text(path)
    return RuntimeFile(path, text, containerd.merge_containerd(text, desired, record))


def _is_in(main: str | None, record: EditRecord) -> bool:
    """True if an earlier run, with an older containerd, added our tables to the main file."""
    data = parse_tables(main)
    return bool(record.edits) and all(has_path(data, edit.path) for edit in record.edits)


def _crio(path: str, context: Context) -> RuntimeFile:
    text, record = context.text(crio.CRIO_DROP_IN), context.record(crio.CRIO_DROP_IN)
    return RuntimeFile(
        crio.CRIO_DROP_IN, text, crio.merge_crio(text, _desired(crio.CRIO_DROP_IN, context), record)
    )


def _generated(context: Context) -> RuntimeConfig | None:
    """The catalog's entry, if k3s or RKE2 regenerates the file at every start."""
    for config in context.known.configs:
        if config.generated and context.runtime.unit in (config.unit, config.agent_unit):
            return config
    return None


def _left_to_its_owner(config: RuntimeConfig, context: Context) -> RuntimePlan:
    """k3s and RKE2 detect the runtime themselves; a first installation requires a restart."""
    variant, runtime = config.variant, context.runtime
    notes = [found.CLUSTER_OWNS_CONFIG(unit=runtime.unit, file=config.config, binary=BINARY_PATH)]
    table = layers_of(context, context.facts.texts, config.config).table
    done = lookup_path(table, RUNTIME_PLACES["containerd"].default) == RUNTIME_NAME
    if context.settings.default_runtime and not done:
        own = f"/etc/rancher/{variant}/config.yaml"
        notes.append(
            found.CLUSTER_DEFAULT_RUNTIME(unit=runtime.unit, file=config.config, config=own)
        )
    plan = _untouched(config.config, tuple(notes), context)
    plan = replace(plan, started=context.service.started)
    need = context.pending or (
        f"{variant} detects the toolkit only when it starts" if context.first else ""
    )
    if not need or not runtime.running:
        return plan
    if context.settings.restart:
        return replace(plan, activation="restart", reason=need)
    note = found.RESTART_NEEDED(unit=runtime.unit, reason=need, why="toolkit_restart is off")
    return replace(plan, reason=need, postponed=True, findings=(*plan.findings, note))


def _untouched(path: str, findings: tuple[Finding, ...], context: Context) -> RuntimePlan:
    runtime = context.runtime
    return RuntimePlan(
        key=context.key,
        name=runtime.name,
        unit=runtime.unit,
        config=path,
        findings=findings,
        running=runtime.running,
        serves=True,
    )
