"""The plan of each container runtime of one host. Pure."""

from __future__ import annotations

from dataclasses import replace

from gpufleet.core.findings import Finding
from gpufleet.formats.edits import has_path, lookup_path
from gpufleet.formats.model import Merged
from gpufleet.toolkit.config import containerd, containerd_layers, crio, docker
from gpufleet.toolkit.config.desired import DesiredRuntime
from gpufleet.toolkit.config.layers import RUNTIME_PLACES
from gpufleet.toolkit.config.tables import parse_tables
from gpufleet.toolkit.findings import runtimes as found
from gpufleet.toolkit.findings.config import CONFIG_INVALID
from gpufleet.toolkit.models import RuntimeConfig
from gpufleet.toolkit.runtime_change import RuntimeFile, assemble_plan, with_activation
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
    if owner := context.owner:
        return _left_to_its_owner(owner, context)
    path, name = context.main_path, context.runtime.name
    file = context.facts.files.get(path)
    if file is None or file.error:
        reason = file.error if file else "it was not among the files that were read"
        return _untouched(path, (CONFIG_INVALID(file=path, reason=reason),), context)
    if name == "containerd":
        disabling = containerd_layers.cri_disabled_in(context.facts.texts, path)
        if disabling:
            return _untouched(path, (found.CRI_DISABLED(file=disabling),), context)
    target = {"docker": _docker, "containerd": _containerd, "crio": _crio}[name](context)
    target = replace(target, merged=judge_merge(target.path, target.merged, context))
    return with_activation(assemble_plan(target, context, serving=True), context)


def _desired(path: str, context: Context) -> DesiredRuntime:
    """The desired configuration by the settings, as far as the runtime's version supports it."""
    place = RUNTIME_PLACES[context.runtime.name].cdi
    ours = any(setting[-len(place) :] == place for setting in context.record(path).values)
    # ours stays after an upgrade of the runtime: without it docker would be restarted for nothing
    opt_in = context.has("cdi") and (ours or not context.has("cdi-default"))
    return DesiredRuntime(
        file=path,
        binary=RUNTIME_BINARY if context.runtime.name == "docker" else BINARY_PATH,
        default=context.settings.default_runtime,
        cdi=context.settings.cdi and opt_in,
        layers=layers_of(context, context.facts.texts),
    )


def _docker(context: Context) -> RuntimeFile:
    path = context.main_path
    text, record = context.text(path), context.record(path)
    desired = replace(_desired(path, context), reads=context.reads)
    merged = docker.merge_docker(text, desired, record)
    if not merged.blocked:
        both = docker.flag_conflicts(merged.text, context.service.exec_start)
        if both:
            unit = context.runtime.unit
            conflict = found.FLAG_CONFLICT(unit=unit, flags=", ".join(both), file=path)
            merged = Merged(text, False, (*merged.notes, conflict), record)
    return RuntimeFile(path, text, merged)


def _containerd(context: Context) -> RuntimeFile:
    path, v3 = context.main_path, context.has("config-v3")
    main, record, version = context.text(path), context.record(path), 3 if v3 else 2
    tables = parse_tables(main)
    # True if an earlier run, with an older containerd, added our tables to the main file
    added = bool(record.edits) and all(has_path(tables, edit.path) for edit in record.edits)
    own = containerd.containerd_drop_in(main, path, context.has("drop-ins-merged"))
    if own and not added:
        path, record, version = own, context.record(own), containerd_layers.version_of(tables)
    desired = replace(
        _desired(path, context),
        newest_version=context.newest_version,
        fills_maps=v3,
        systemd_cgroups=context.systemd_cgroups,
        new_version=version,
    )
    text = context.text(path)
    return RuntimeFile(path, text, containerd.merge_containerd(text, desired, record))


def _crio(context: Context) -> RuntimeFile:
    path = crio.CRIO_DROP_IN
    text, record = context.text(path), context.record(path)
    return RuntimeFile(path, text, crio.merge_crio(text, _desired(path, context), record))


def _left_to_its_owner(config: RuntimeConfig, context: Context) -> RuntimePlan:
    """k3s and RKE2 detect the runtime themselves; a first installation requires a restart."""
    unit, file, places = context.runtime.unit, config.config, RUNTIME_PLACES["containerd"]
    notes = [found.CLUSTER_OWNS_CONFIG(unit=unit, file=file, binary=BINARY_PATH)]
    layers = layers_of(context, context.facts.texts, file)
    restarted = not (context.first or context.pending)
    if restarted and layers.files and layers.entry((*places.runtimes, RUNTIME_NAME)) is None:
        notes = [found.CLUSTER_LACKS_RUNTIME(unit=unit, file=file)]
    done = lookup_path(layers.table, places.default) == RUNTIME_NAME
    if context.settings.default_runtime and not done:
        own = f"/etc/rancher/{config.variant}/config.yaml"
        notes.append(found.CLUSTER_DEFAULT_RUNTIME(unit=unit, file=file, config=own))
    return with_activation(_untouched(file, tuple(notes), context), context)


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
