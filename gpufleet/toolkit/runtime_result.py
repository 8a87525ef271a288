"""The result of a change by all files of a runtime. Adopted settings are judged like ours."""

from __future__ import annotations

import posixpath
from dataclasses import dataclass, replace

from gpufleet.core.findings import Finding
from gpufleet.facts.model import Runtime
from gpufleet.formats.edits import Data, has_path, lookup_path, same_value
from gpufleet.formats.model import Merged
from gpufleet.toolkit.config import containerd, containerd_layers
from gpufleet.toolkit.config.containerd_options import BINARY_NAME_OPTION, read_option
from gpufleet.toolkit.config.layers import RUNTIME_PLACES, Layers
from gpufleet.toolkit.config.tables import base_runtime, parse_tables
from gpufleet.toolkit.findings import results as found
from gpufleet.toolkit.findings.config import NO_CGROUPS
from gpufleet.toolkit.findings.runtimes import OLD_CONFIG_VERSION
from gpufleet.toolkit.runtime_layers import layers_of
from gpufleet.toolkit.runtime_model import Context

References = dict[str, str]  # name of a runtime -> the setting that uses it
# dockerd knows runc, and a shim by its name or path, without an entry
# (docs.docker.com/engine/daemon/alternative-runtimes).
_SHIM_MARKS = (".", "/")
RUNTIME_NAME = "nvidia"
# created by the toolkit's packages
RUNTIME_CONFIG_PATH = "/etc/nvidia-container-runtime/config.toml"
_LOW_LEVEL = ("runc", "crun")  # one is built into CRI-O, by its version (crio.conf(5))
_UNCHOSEN = ("", *_LOW_LEVEL)  # defaults that nobody chose
_PROGRAM = {"docker": "path", "crio": "runtime_path"}
_EFFECT = {
    "docker": "dockerd does not start",
    "containerd": "its CRI plugin does not load, and no pod starts",
    "crio": "CRI-O does not start",
}


@dataclass(frozen=True, slots=True)
class RuntimeResult:
    """The runtime's files before and after the change of one of them."""

    context: Context
    before: Layers
    after: Layers

    @property
    def undefined(self) -> tuple[References, References]:
        """Runtimes that are named and not defined, before and after the change."""
        fills_maps, name = self.context.has("config-v3"), self.context.runtime.name
        before = find_undefined(name, self.before.table, fills_maps)
        return before, find_undefined(name, self.after.table, fills_maps)


def find_undefined(runtime: str, table: Data, fills_maps: bool) -> References:
    """The undefined names in one runtime's whole configuration, each with the setting.

    `fills_maps`: containerd keeps its built-in runc when a file names another one (2.0 and newer).
    """
    places = RUNTIME_PLACES[runtime]
    default = str(lookup_path(table, places.default) or "")
    runtimes = lookup_path(table, places.runtimes) or {}
    if lookup_path(table, containerd.OLD_DEFAULT) and not fills_maps:
        return {}
    built_in = {
        "docker": default in ("", containerd.BUILT_IN)
        or any(mark in default for mark in _SHIM_MARKS),
        "containerd": default in ("", containerd.BUILT_IN) and (fills_maps or not runtimes),
        "crio": default in _UNCHOSEN,
    }[runtime]
    name = default or containerd.BUILT_IN
    return {} if built_in or name in runtimes else {name: places.default[-1]}


def runtime_result(path: str, text: str | None, context: Context) -> RuntimeResult:
    """The files with `text` at `path`; a file that the runtime does not read is taken alone."""
    old = context.facts.texts
    new = {name: value for name, value in {**old, path: text}.items() if value is not None}
    main = context.main_path
    if context.runtime.name == "docker":
        main = path
    elif context.runtime.name == "containerd":
        read = {*containerd_layers.read_files({**old, path: text or ""}, main)}
        main = main if path in read else path
    return RuntimeResult(context, layers_of(context, old, main), layers_of(context, new, main))


def keep_defined_runtime(path: str, merged: Merged, context: Context) -> Merged:
    """The merge, or no change if the file would then name an undefined runtime."""
    if not merged.changed or merged.blocked:
        return merged
    runtime = context.runtime.name
    before, after = runtime_result(path, merged.text, context).undefined
    notes = tuple(
        found.RUNTIME_STILL_NAMED(file=path, runtime=runtime, name=name, setting=setting)
        for name, setting in after.items()
        if name not in before
    )
    return _unchanged(path, merged, context, notes) if notes else merged


def judge_merge(path: str, merged: Merged, context: Context) -> Merged:
    """The merge if it has an effect, with findings about what the runtime has then."""
    merged = keep_defined_runtime(path, merged, context)
    if merged.blocked:
        return merged
    result = runtime_result(path, merged.text, context)
    layered = context.runtime.name != "docker"
    if layered and merged.changed and same_value(result.before.table, result.after.table):
        merged = _unchanged(path, merged, context)
        result = replace(result, after=result.before)
    places = RUNTIME_PLACES[context.runtime.name]
    if result.after.entry((*places.runtimes, RUNTIME_NAME)) is None:
        other, since = result.after.last, context.known.minimum("drop-ins-merged")
        lost = found.NOT_EFFECTIVE(file=path, other=other, since=since)
        return replace(merged, notes=(*merged.notes, lost))
    notes = (*_ignored(context), *_default(result), *_cdi(path, result), *_undefined(path, result))
    notes = (*notes, *_low_level(result), *_no_cgroups(context))
    return replace(merged, notes=(*merged.notes, *notes))


def _unchanged(
    path: str, merged: Merged, context: Context, notes: tuple[Finding, ...] = ()
) -> Merged:
    record = context.record(path)
    text = context.text(path)
    return replace(merged, text=text, changed=False, notes=(*merged.notes, *notes), record=record)


def _ignored(context: Context) -> list[Finding]:
    """containerd 2.0 to 2.2 ignores tables that a file of version 1 has."""
    path, version = context.main_path, context.runtime.version
    data = parse_tables(context.text(path)) if context.runtime.name == "containerd" else {}
    old = lookup_path(data, ("plugins", containerd_layers.CRI[1]))
    read = containerd_layers.cri_names(1, context.newest_version)
    if not old or containerd_layers.version_of(data) != 1 or containerd_layers.CRI[1] in read:
        return []
    return [OLD_CONFIG_VERSION(file=path, version=version)]


def _default(result: RuntimeResult) -> list[Finding]:
    """The default runtime: the requested one, in spite of the user's own setting."""
    runtime = result.context.runtime.name
    place = RUNTIME_PLACES[runtime].default
    if not result.context.settings.default_runtime:
        return []
    old, new = (str(lookup_path(each.table, place) or "") for each in (result.before, result.after))
    table = lookup_path(result.after.table, containerd.OLD_DEFAULT)
    if table and runtime == "containerd" and not result.context.has("config-v3"):
        place, new = containerd.OLD_DEFAULT[:-1], str(table)  # 1.x: the table wins
    if new != RUNTIME_NAME:
        file, setting = result.after.file_of(place), place[-1]
        return [found.DEFAULT_OVERRIDDEN(file=file, runtime=runtime, setting=setting, value=new)]
    if old in (*_UNCHOSEN, RUNTIME_NAME):
        return []
    return [found.DEFAULT_REPLACED(file=result.before.file_of(place), old=old, name=RUNTIME_NAME)]


def _cdi(path: str, result: RuntimeResult) -> list[Finding]:
    """CDI: an optional extra, so that it never blocks."""
    context, runtime = result.context, result.context.runtime.name
    place = RUNTIME_PLACES[runtime].cdi
    if not place or not context.settings.cdi or not context.has("cdi"):
        return []
    if not has_path(result.after.table, place):
        other = result.after.last
        if context.has("cdi-default") or other == path:
            return []
        plugin = containerd_layers.plugin_of(context.text(other), context.newest_version)
        change = f'Add enable_cdi = true to [plugins."{plugin}"] in {other} and restart {runtime}'
        does = f"cannot enable it, because {other} replaces its settings of the CRI plugin"
        return [found.CDI_OFF(runtime=runtime, file=path, does=does, change=change)]
    if lookup_path(result.after.table, place) is True:
        return []
    file, setting = result.after.file_of(place), ".".join(place)
    change = f"Remove {setting} from {file} to let gpufleet enable CDI"
    return [found.CDI_OFF(runtime=runtime, file=file, does="disables it", change=change)]


def _undefined(path: str, result: RuntimeResult) -> list[Finding]:
    """A runtime that is named and not defined: the change defines it, or leaves it to the user."""
    context, runtime = result.context, result.context.runtime.name
    before, after = result.undefined
    file = result.after.file_of(RUNTIME_PLACES[runtime].default) or result.after.last
    defined = [
        found.RUNTIME_TO_DEFINE(
            runtime=runtime,
            name=name,
            setting=setting,
            effect=_EFFECT[runtime],
            file=path,
            unit=context.runtime.unit,
        )
        for name, setting in before.items()
        if name not in after
    ]
    return defined + [
        found.RUNTIME_UNDEFINED(
            runtime=runtime,
            name=name,
            setting=setting,
            effect=_EFFECT[runtime],
            example=_example(name, file, context),
            file=file,
        )
        for name, setting in after.items()
        if name in before
    ]


def _low_level(result: RuntimeResult) -> list[Finding]:
    """A finding if nvidia-container-runtime does not find runc or crun in PATH."""
    context, runtime, file = result.context, result.context.runtime, RUNTIME_CONFIG_PATH
    config = parse_tables(context.text(file))
    listed = lookup_path(config, ("nvidia-container-runtime", "runtimes"))
    named = isinstance(listed, list) and any("/" in str(name) for name in listed)
    places = RUNTIME_PLACES[runtime.name]
    runtimes = lookup_path(result.before.table, places.runtimes) or {}
    default = str(lookup_path(result.before.table, places.default) or "")
    name = base_runtime(
        runtimes, (default,), RUNTIME_NAME, lambda entry: bool(_program(runtime, entry))
    )
    program = _program(runtime, runtimes.get(name, {}))
    if runtime.runc_in_path or named or not program.startswith("/"):
        return []
    return [found.LOW_LEVEL_RUNTIME(runtime=runtime.name, program=program, config=file)]


def _no_cgroups(context: Context) -> list[Finding]:
    """A setting for docker without root that takes the GPUs from `docker run --gpus` as root."""
    config = parse_tables(context.text(RUNTIME_CONFIG_PATH))
    off = lookup_path(config, ("nvidia-container-cli", "no-cgroups")) is True
    hook = context.runtime.name == "docker" and not context.has("gpus-by-cdi")
    running = context.runtime.running
    return [NO_CGROUPS(file=RUNTIME_CONFIG_PATH)] if off and hook and running else []


def _program(runtime: Runtime, entry: Data) -> str:
    """Path of the entry's runc or crun, or "" if it names another program."""
    key = _PROGRAM.get(runtime.name, "")
    program = str((entry.get(key) if key else read_option(entry, BINARY_NAME_OPTION)) or "")
    return program if posixpath.basename(program) in _LOW_LEVEL else ""


def _example(name: str, file: str, context: Context) -> str:
    """A definition of the runtime, as the user would write it."""
    if context.runtime.name == "docker":
        return f'"runtimes": {{"{name}": {{"path": "{name}"}}}}'
    if context.runtime.name == "crio":
        return f"[crio.runtime.runtimes.{name}] with its runtime_path"
    plugin = containerd_layers.plugin_of(context.text(file), context.newest_version)
    shim = containerd.SHIM if name in _UNCHOSEN else f"io.containerd.{name}.v2"
    return f'[plugins."{plugin}".containerd.runtimes.{name}] with runtime_type = "{shim}"'
