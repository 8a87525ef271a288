"""What is to be done about each container runtime of one host. Pure."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, replace

from gpufleet.catalog.dockerd import dockerd_options
from gpufleet.catalog.models import Catalog
from gpufleet.catalog.toolkit_models import RuntimeConfig
from gpufleet.facts.model import NodeFacts, Runtime
from gpufleet.facts.services import RuntimeName
from gpufleet.findings import Finding
from gpufleet.findings import toolkit as found
from gpufleet.plan.activation import with_activation
from gpufleet.plan.runtime_model import ConfigChange, Context, RuntimePlan
from gpufleet.runtimes import containerd, crio, docker
from gpufleet.runtimes.edits import has
from gpufleet.runtimes.jsontext import JSON
from gpufleet.runtimes.model import Merged, Record, RuntimeWish
from gpufleet.runtimes.tables import parsed
from gpufleet.settings import ToolkitSettings

BINARY = "nvidia-container-runtime"
BINARY_PATH = f"/usr/bin/{BINARY}"
_PLAIN_KEY = re.compile(r"[A-Za-z0-9_-]+")


@dataclass(frozen=True, slots=True)
class _Target:
    """The file of one runtime that is ours to change."""

    path: str
    text: str | None
    merged: Merged


def plan_runtime(key: str, runtime: Runtime, context: Context) -> RuntimePlan:
    """What to do about one runtime that is to be configured; reports findings, raises nothing."""
    generated = _generated(runtime, context)
    if generated:
        return _left_to_its_owner(key, runtime, generated, context)
    path = _main_path(key, runtime, context)
    file = context.facts.files.get(path)
    if file is None or file.error:
        reason = file.error if file else "it was not among the files that were read"
        return _untouched(key, runtime, path, (found.CONFIG_UNREADABLE(file=path, reason=reason),))
    if runtime.name == "containerd" and containerd.cri_disabled(file.content):
        return _untouched(key, runtime, path, (found.CRI_DISABLED(file=path),))
    target = {"docker": _docker, "containerd": _containerd, "crio": _crio}[runtime.name](
        key, runtime, path, context
    )
    return with_activation(_assemble(key, runtime, target, context), runtime, context)


def _main_path(key: str, runtime: Runtime, context: Context) -> str:
    if key == "containerd" and context.settings.containerd_config:
        return context.settings.containerd_config
    return runtime.config_path


def _text(facts: NodeFacts, path: str) -> str | None:
    file = facts.files.get(path)
    return file.content if file else None


def _wish(path: str, runtime: Runtime, context: Context) -> RuntimeWish:
    """What the settings ask of this runtime, as far as its version can have it."""
    opt_in = context.has(runtime, "cdi") and not context.has(runtime, "cdi-default")
    return RuntimeWish(
        file=path,
        binary=BINARY if runtime.name == "docker" else BINARY_PATH,
        default=context.settings.default_runtime,
        cdi=context.settings.cdi and opt_in,
    )


def _docker(key: str, runtime: Runtime, path: str, context: Context) -> _Target:
    text = _text(context.facts, path)
    merged = docker.merge(text, _wish(path, runtime, context), context.record(key))
    service = context.facts.services.get(runtime.unit)
    if not merged.blocked and service:
        flags = dockerd_options().exclusive_flags()
        both = docker.conflicts(merged.text, service.exec_start, flags)
        if both:
            conflict = found.FLAG_CONFLICT(unit=runtime.unit, flags=", ".join(both), file=path)
            merged = Merged(text, False, (*merged.notes, conflict), context.record(key))
    return _Target(path, text, merged)


def _containerd(key: str, runtime: Runtime, path: str, context: Context) -> _Target:
    facts, record = context.facts, context.record(key)
    main = _text(facts, path)
    deep = context.has(runtime, "drop-ins-merged")
    v3 = context.has(runtime, "config-v3")
    own = containerd.drop_in(main, path, deep)
    imports = {
        name: text
        for name in containerd.imported(main, path, facts.files)
        if name != own and (text := _text(facts, name)) is not None
    }
    wish = replace(
        _wish(path, runtime, context),
        effective=containerd.effective(main, imports.values(), deep),
        fills_maps=v3,
        new_version=3 if v3 else 2,
    )
    if own and not _is_in(main, record):
        text = _text(facts, own)
        wish = replace(wish, file=own)
        return _Target(own, text, containerd.merge(text, wish, record, main=main))
    merged = containerd.merge(main, wish, record)
    if merged.changed and not merged.blocked:
        merged = _hindered(main, path, imports, runtime, merged, context)
    return _Target(path, main, merged)


def _is_in(main: str | None, record: Record) -> bool:
    """Whether an earlier run, of an older containerd, put our tables into the main file itself."""
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
    """The merge, or none of it where containerd would not heed the file."""
    since = context.known(runtime).minimum("drop-ins-merged")
    other = containerd.replaced_by(imports, context.has(runtime, "drop-ins-merged"))
    note = None
    if other:
        note = found.NOT_EFFECTIVE(file=path, other=other, since=since)
    elif context.has(runtime, "config-v3") and parsed(main) and _is_version_1(main):
        note = found.OLD_CONFIG_VERSION(file=path, version=runtime.version)
    return Merged(main, False, (*merged.notes, note), merged.record) if note else merged


def _is_version_1(main: str | None) -> bool:
    return main is not None and containerd.file_version(main) == 1


def _crio(key: str, runtime: Runtime, path: str, context: Context) -> _Target:
    facts = context.facts
    folder = crio.DROP_IN.rsplit("/", 1)[0]
    layers = [_text(facts, path) or ""]
    names = sorted(name for name in facts.files if name.rsplit("/", 1)[0] == folder)
    layers += [_text(facts, name) or "" for name in names if name != crio.DROP_IN]
    wish = replace(_wish(crio.DROP_IN, runtime, context), effective=crio.effective(layers))
    text = _text(facts, crio.DROP_IN)
    return _Target(crio.DROP_IN, text, crio.merge(text, wish, context.record(key)))


def plan_runtime_removal(
    settings: ToolkitSettings, facts: NodeFacts, catalog: Catalog
) -> tuple[RuntimePlan, ...]:
    """How the configuration of each recorded runtime loses what is ours, by the host's record."""
    context = Context(settings, facts, catalog, first=False)
    recorded = ((facts.provenance or {}).get("toolkit") or {}).get("runtimes") or {}
    plans = []
    for key, entry in recorded.items():
        record, path = context.record(key), str(entry["config"])
        if not record:
            continue
        runtime = facts.runtimes.get(key) or _gone(key, path)
        text = _text(facts, path)
        module = {"docker": docker, "containerd": containerd, "crio": crio}[runtime.name]
        target = _Target(path, text, module.unmerge(text, record, path))
        plan = replace(
            _assemble(key, runtime, target, context), default=False, findings=target.merged.notes
        )
        if plan.change and key not in facts.runtimes:
            plan = replace(plan, change=replace(plan.change, validate=()))
        plans.append(with_activation(plan, runtime, context))
    return tuple(plans)


def _gone(key: str, path: str) -> Runtime:
    """A runtime that was removed since: nothing runs, and nothing can parse its configuration."""
    names: dict[str, RuntimeName] = {"docker": "docker", "crio": "crio"}
    return Runtime(names.get(key, "containerd"), "0", f"{key}.service", path, running=False)


def _change(target: _Target, runtime: Runtime, context: Context) -> ConfigChange | None:
    if not target.merged.changed or target.merged.blocked:
        return None
    file = context.facts.files.get(target.path)
    there = file if file and file.content is not None else None
    return ConfigChange(
        path=target.path,
        before=target.text,
        after=target.merged.text,
        mode=there.mode if there else 0o644,
        sha256=there.sha256 or _sha256(target.text) if there else "",
        validate=_validate(runtime, context),
    )


def _assemble(key: str, runtime: Runtime, target: _Target, context: Context) -> RuntimePlan:
    merged = target.merged
    findings = list(merged.notes)
    if context.settings.cdi and runtime.name != "crio" and not context.has(runtime, "cdi"):
        since = context.known(runtime).minimum("cdi")
        findings.append(
            found.CDI_UNSUPPORTED(runtime=runtime.name, version=runtime.version, since=since)
        )
    return RuntimePlan(
        key=key,
        name=runtime.name,
        unit=runtime.unit,
        config=target.path,
        change=_change(target, runtime, context),
        activation="none",
        reason="",
        postponed=False,
        default=context.settings.default_runtime,
        user_keys=_user_keys(runtime, target),
        record=merged.record,
        findings=tuple(findings),
    )


def _sha256(text: str | None) -> str:
    return hashlib.sha256((text or "").encode()).hexdigest()


def _validate(runtime: Runtime, context: Context) -> tuple[str, ...]:
    if runtime.name == "docker":
        able = context.has(runtime, "validate")
        return ("dockerd", "--validate", "--config-file", "{path}") if able else ()
    if runtime.name == "containerd":
        return ("containerd", "--config", "{path}", "config", "dump")
    return ("crio", "--config", "{path}", "config")


def _user_keys(runtime: Runtime, target: _Target) -> tuple[str, ...]:
    """The user's own settings, one or two levels deep, as the checks look for them later."""
    if target.text is None or target.merged.blocked:
        return ()
    undo = docker.unmerge if runtime.name == "docker" else containerd.unmerge
    text = undo(target.text, target.merged.record).text or ""
    data = JSON.parse(text.lstrip("\ufeff")) if runtime.name == "docker" else parsed(text)
    keys = []
    for key, value in data.items():
        if runtime.name == "docker" and isinstance(value, dict) and value:
            keys += [f"{key}.{inner}" for inner in value if _PLAIN_KEY.fullmatch(inner)]
        elif key not in ("default-runtime", "plugins", "version") and _PLAIN_KEY.fullmatch(key):
            keys.append(key)
    return tuple(keys)


def _generated(runtime: Runtime, context: Context) -> RuntimeConfig | None:
    """The catalog's entry, where k3s or RKE2 writes the file anew at every start."""
    for config in context.known(runtime).configs:
        if config.generated and runtime.unit in (config.unit, config.agent_unit):
            return config
    return None


def _left_to_its_owner(
    key: str, runtime: Runtime, config: RuntimeConfig, context: Context
) -> RuntimePlan:
    """k3s and RKE2 find the runtime by themselves; a first installation needs one more start."""
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
        f"{variant} looks for the toolkit only when it starts" if context.first else ""
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
    )
