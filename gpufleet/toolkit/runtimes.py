"""The plan of each container runtime of one host. Pure."""

from __future__ import annotations

from dataclasses import replace

from gpufleet.core.findings import Finding
from gpufleet.facts.model import Runtime
from gpufleet.toolkit import findings as found
from gpufleet.toolkit.activation import with_activation
from gpufleet.toolkit.config import containerd, crio, docker
from gpufleet.toolkit.config.edits import has
from gpufleet.toolkit.config.model import DesiredRuntime, Merged, Record
from gpufleet.toolkit.config.tables import parsed
from gpufleet.toolkit.dockerd import dockerd_options
from gpufleet.toolkit.models import RuntimeConfig
from gpufleet.toolkit.runtime_change import Target, assemble
from gpufleet.toolkit.runtime_model import Context, RuntimePlan
from gpufleet.toolkit.runtime_removal import without_old_files
from gpufleet.toolkit.runtime_texts import crio_layers, imported_texts, main_path, safe, text_of

BINARY = "nvidia-container-runtime"
BINARY_PATH = f"/usr/bin/{BINARY}"


def plan_runtime(key: str, runtime: Runtime, context: Context) -> RuntimePlan:
    """The plan of one runtime to configure. Reports findings; never raises."""
    return without_old_files(_plan(key, runtime, context), runtime, context)


def _plan(key: str, runtime: Runtime, context: Context) -> RuntimePlan:
    generated = _generated(runtime, context)
    if generated:
        return _left_to_its_owner(key, runtime, generated, context)
    path = main_path(key, runtime, context.settings)
    file = context.facts.files.get(path)
    if file is None or file.error:
        reason = file.error if file else "it was not among the files that were read"
        return _untouched(key, runtime, path, (found.CONFIG_UNREADABLE(file=path, reason=reason),))
    if runtime.name == "containerd" and containerd.cri_disabled(file.content):
        return _untouched(key, runtime, path, (found.CRI_DISABLED(file=path),))
    target = {"docker": _docker, "containerd": _containerd, "crio": _crio}[runtime.name](
        key, runtime, path, context
    )
    target = replace(target, merged=safe(key, runtime, target.path, target.merged, context))
    return with_activation(assemble(key, runtime, target, context, serving=True), runtime, context)


def _desired(path: str, runtime: Runtime, context: Context) -> DesiredRuntime:
    """The desired configuration by the settings, as far as the runtime's version supports it."""
    opt_in = context.has(runtime, "cdi") and not context.has(runtime, "cdi-default")
    return DesiredRuntime(
        file=path,
        binary=BINARY if runtime.name == "docker" else BINARY_PATH,
        default=context.settings.default_runtime,
        cdi=context.settings.cdi and opt_in,
    )


def _docker(key: str, runtime: Runtime, path: str, context: Context) -> Target:
    text = text_of(context.facts, path)
    record = context.record(key, path)
    desired = replace(_desired(path, runtime, context), reads=context.reads(runtime))
    merged = docker.merge(text, desired, record)
    service = context.facts.services.get(runtime.unit)
    if not merged.blocked and service:
        flags = dockerd_options().exclusive_flags()
        both = docker.conflicts(merged.text, service.exec_start, flags)
        if both:
            conflict = found.FLAG_CONFLICT(unit=runtime.unit, flags=", ".join(both), file=path)
            merged = Merged(text, False, (*merged.notes, conflict), record)
    return Target(path, text, merged)


def _containerd(key: str, runtime: Runtime, path: str, context: Context) -> Target:
    facts, record = context.facts, context.record(key, path)
    main = text_of(facts, path)
    deep = context.has(runtime, "drop-ins-merged")
    v3 = context.has(runtime, "config-v3")
    newest = context.newest_version(runtime)
    own = containerd.drop_in(main, path, deep)
    imports = imported_texts(main, path, facts.texts, without=own)
    desired = replace(
        _desired(path, runtime, context),
        effective=containerd.effective(main, imports.values(), deep, newest),
        newest_version=newest,
        fills_maps=v3,
        new_version=3 if v3 else 2,
    )
    if own and not _is_in(main, record):
        text = text_of(facts, own)
        desired = replace(desired, file=own)
        merged = containerd.merge(text, desired, context.record(key, own), main=main)
        return Target(own, text, merged)
    merged = containerd.merge(main, desired, record)
    if merged.changed and not merged.blocked:
        merged = _hindered(main, path, imports, runtime, merged, context)
    return Target(path, main, merged)


def _is_in(main: str | None, record: Record) -> bool:
    """Whether an earlier run, with an older containerd, added our tables to the main file."""
    data = parsed(main)
    return bool(record.edits) and all(has(data, edit.path) for edit in record.edits)


def _hindered(
    main: str | None,
    path: str,
    imports: dict[str, str],
    runtime: Runtime,
    merged: Merged,
    context: Context,
) -> Merged:
    """The merge, or none of it if containerd would ignore the file."""
    since = context.known(runtime).minimum("drop-ins-merged")
    deep, newest = context.has(runtime, "drop-ins-merged"), context.newest_version(runtime)
    other = containerd.replaced_by(imports, deep, newest)
    note = None
    if other:
        note = found.NOT_EFFECTIVE(file=path, other=other, since=since)
    elif context.has(runtime, "config-v3") and parsed(main) and _is_version_1(main):
        note = found.OLD_CONFIG_VERSION(file=path, version=runtime.version)
    return Merged(main, False, (*merged.notes, note), merged.record) if note else merged


def _is_version_1(main: str | None) -> bool:
    return main is not None and containerd.file_version(main) == 1


def _crio(key: str, runtime: Runtime, path: str, context: Context) -> Target:
    facts = context.facts
    layers = crio_layers(path, facts.texts, without=crio.DROP_IN)
    desired = replace(_desired(crio.DROP_IN, runtime, context), effective=crio.effective(layers))
    text, record = text_of(facts, crio.DROP_IN), context.record(key, crio.DROP_IN)
    return Target(crio.DROP_IN, text, crio.merge(text, desired, record))


def _generated(runtime: Runtime, context: Context) -> RuntimeConfig | None:
    """The catalog's entry, if k3s or RKE2 regenerates the file at every start."""
    for config in context.known(runtime).configs:
        if config.generated and runtime.unit in (config.unit, config.agent_unit):
            return config
    return None


def _left_to_its_owner(
    key: str, runtime: Runtime, config: RuntimeConfig, context: Context
) -> RuntimePlan:
    """k3s and RKE2 detect the runtime themselves; a first installation requires a restart."""
    variant = config.variant
    notes = [found.CLUSTER_OWNS_CONFIG(unit=runtime.unit, file=config.config, binary=BINARY_PATH)]
    if context.settings.default_runtime:
        own = f"/etc/rancher/{variant}/config.yaml"
        notes.append(
            found.CLUSTER_DEFAULT_RUNTIME(unit=runtime.unit, file=config.config, config=own)
        )
    plan = _untouched(key, runtime, config.config, tuple(notes))
    plan = replace(plan, started=context.started(runtime.unit))
    need = context.pending(runtime.unit) or (
        f"{variant} detects the toolkit only when it starts" if context.first else ""
    )
    if not need or not runtime.running:
        return plan
    if context.settings.restart:
        return replace(plan, activation="restart", reason=need)
    note = found.RESTART_NEEDED(unit=runtime.unit, reason=need)
    return replace(plan, reason=need, postponed=True, findings=(*plan.findings, note))


def _untouched(key: str, runtime: Runtime, path: str, findings: tuple[Finding, ...]) -> RuntimePlan:
    return RuntimePlan(
        key=key,
        name=runtime.name,
        unit=runtime.unit,
        config=path,
        change=None,
        activation="none",
        reason="",
        postponed=False,
        default=False,
        user_keys=(),
        record=Record(),
        findings=findings,
        running=runtime.running,
        serves=True,
    )
