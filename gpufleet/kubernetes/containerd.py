"""The settings of containerd that a kubelet requires. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from gpufleet.core.findings import Finding
from gpufleet.facts.model import NodeFacts, Runtime
from gpufleet.formats.edits import Data, lookup_path
from gpufleet.formats.model import EditRecord, Merged, Path
from gpufleet.kubernetes.findings import choice as found
from gpufleet.kubernetes.record import KubernetesEntry
from gpufleet.toolkit.config.containerd import SHIM
from gpufleet.toolkit.config.containerd_layers import (
    CRI,
    cri_disabled_in,
    read_files,
    version_of,
    written_name,
)
from gpufleet.toolkit.config.containerd_options import DRIVER, option_spellings, read_option
from gpufleet.toolkit.config.desired import DesiredRuntime
from gpufleet.toolkit.config.layers import RUNTIME_PLACES
from gpufleet.toolkit.config.tables import (
    WantedTables,
    is_our_value,
    merge_settings,
    parse_tables,
    unmerge_settings,
)
from gpufleet.toolkit.models import ToolkitCatalog
from gpufleet.toolkit.runtime_layers import layers_of
from gpufleet.toolkit.runtime_model import ConfigChange, Context, RuntimePlan
from gpufleet.toolkit.settings import ToolkitSettings

CERTS = "/etc/containerd/certs.d"
DOCKER_CERTS = "/etc/docker/certs.d"  # beside it in the default file of 2.2.0
CNI = "/opt/cni/bin"  # folder of the programs of the package kubernetes-cni
NVIDIA = "nvidia"
RUNTIMES, DEFAULT, _ = RUNTIME_PLACES["containerd"]
REGISTRY_CONFIG_KEYS = ("registry", "config_path")
_IMAGES = "io.containerd.cri.v1.images"  # from version 3 of the file on


@dataclass(frozen=True, slots=True)
class Required:
    """Settings that the kubelet requires: the cgroup driver, the pause image ("": any), and if
    images come from mirrors, which are files below CERTS."""

    systemd_cgroups: bool
    pause: str
    mirrors: bool = False
    one_folder: bool = False  # containerd takes a list of folders for the name of one


def plan_containerd_cri(
    facts: NodeFacts, catalog: ToolkitCatalog, required: Required, texts: Mapping[str, str]
) -> tuple[RuntimePlan | None, tuple[Finding, ...]]:
    """The change of containerd's main file. `texts`: of all files, after the roles before."""
    runtime = facts.runtimes["containerd"]
    context = Context("containerd", runtime, ToolkitSettings.model_validate({}), facts, catalog)
    path, text = runtime.config_path, texts.get(runtime.config_path)
    if file := cri_disabled_in(texts, path):
        return None, (found.KUBELET_CRI_DISABLED(file=file),)
    one_folder = context.has("one-registry-folder") and not _pulls_locally(texts, path)
    required = replace(required, one_folder=one_folder)
    if required.mirrors and (problem := _registry_problem(texts, path, one_folder=one_folder)):
        return None, (problem,)
    entry = facts.provenance.entry(KubernetesEntry).containerd
    record = entry.changes.record if entry.changes and entry.config == path else EditRecord()
    desired = DesiredRuntime(file=path, new_version=min(3, context.newest_version))

    def wanted_of(data: Data) -> WantedTables:
        return WantedTables(_wanted(data, required, context, record), (), "")

    skeleton = f"version = {desired.new_version}\n"
    merged = merge_settings(text, skeleton, desired, record, wanted_of)
    plan = _plan(facts, runtime, merged, text)
    if merged.blocked or merged.text is None:
        return plan, merged.notes
    overridden = _overridden(context, {**texts, path: merged.text}, required)
    return plan, (*merged.notes, *overridden)


def _overridden(
    context: Context, texts: Mapping[str, str], required: Required
) -> Iterator[Finding]:
    """A finding for each required setting that an imported file overrides."""
    layers = layers_of(context, texts)
    default = lookup_path(layers.table, DEFAULT, "runc")
    wanted = required.systemd_cgroups
    for name in sorted({"runc" if default == NVIDIA else default, NVIDIA}):
        runtime: Path = (*RUNTIMES, name)
        entry = layers.entry(runtime)
        if entry is None or bool(read_option(entry, DRIVER)) == wanted:
            continue
        place: Path = (*runtime, "options", (option_spellings(entry, DRIVER) or (DRIVER,))[-1])
        file = layers.file_of(place) or layers.file_of(runtime)
        if file != context.main_path:
            yield found.OVERRIDDEN(
                file=file,
                path=context.main_path,
                key=".".join(place),
                value=str(not wanted).lower(),
                wanted=str(wanted).lower(),
            )


def plan_without(facts: NodeFacts, record: EditRecord, path: str) -> RuntimePlan | None:
    """The change that removes our settings, or None if the file has no such settings."""
    runtime = facts.runtimes.get("containerd")
    file = facts.files.get(path)
    if runtime is None or file is None or not record:
        return None
    merged = unmerge_settings(file.content, record, path)
    return _plan(facts, runtime, merged, file.content)


def _wanted(
    data: Data, required: Required, context: Context, record: EditRecord
) -> dict[Path, Any]:
    wanted: dict[Path, Any] = {}
    version = version_of(data) if data else min(3, context.newest_version)
    if not data:
        wanted[("version",)] = version
    runtime: Path = ("plugins", written_name(data, version, context.newest_version))
    images: Path = ("plugins", _IMAGES) if runtime[1] == CRI[3] else runtime
    pinned = ("pinned_images", "sandbox") if images != runtime else ("sandbox_image",)
    default = lookup_path(data, (*runtime, "containerd", "default_runtime_name"), "runc")
    base = "runc" if default == NVIDIA else default
    tables: Path = (*runtime, "containerd", "runtimes")
    for name in (base, NVIDIA):
        entry = lookup_path(data, (*tables, name))
        names = option_spellings(entry or {}, DRIVER) or (DRIVER,)
        options: list[Path] = [(*tables, name, "options", key) for key in names]
        if all(bool(lookup_path(data, each)) == required.systemd_cgroups for each in options):
            places: list[Path] = [(*tables, name), *options]
            wanted |= {at: record.values[at] for at in places if is_our_value(data, at, record)}
            continue
        if entry is not None:
            wanted |= dict.fromkeys(options, required.systemd_cgroups)
        elif name == base:  # built in; 1.x knows nothing of it once the file names it
            entry = {"runtime_type": SHIM, "options": {DRIVER: True}}
            wanted |= {(*tables, name): entry}
    if required.pause:
        sandbox: Path = (*images, *pinned)
        wanted[sandbox] = required.pause
    if required.mirrors:
        place = (*images, *REGISTRY_CONFIG_KEYS)
        wanted |= _registry_folders(data, place, record, one_folder=required.one_folder)
    return wanted | _cni_programs(data, (*runtime, "cni"), context, record)


def _registry_folders(
    data: Data, place: Path, record: EditRecord, *, one_folder: bool
) -> dict[Path, Any]:
    """Folders of files about registries, separated by colons: the user's before ours."""
    folders = _folders(lookup_path(data, place))
    if is_our_value(data, place, record) and not (one_folder and CERTS in folders):
        return {place: record.values[place]}
    if one_folder:
        return {} if folders == [CERTS] else {place: CERTS}
    return {} if CERTS in folders else {place: ":".join([*folders, CERTS])}


def _registry_problem(texts: Mapping[str, str], main: str, *, one_folder: bool) -> Finding | None:
    """Why files below CERTS would not be read: the CRI plugin does not load if `mirrors` are set
    too, and a file names other folders where containerd reads one."""
    last, folders = main, [CERTS]  # a later file overrides an earlier one
    for path, plugin in _plugins(texts, main):
        if lookup_path(plugin, ("registry", "mirrors")):
            return found.MIRRORS_TWICE(file=path)
        if there := _folders(lookup_path(plugin, REGISTRY_CONFIG_KEYS)):
            last, folders = path, there
    if one_folder and not set(folders) <= {CERTS, DOCKER_CERTS}:
        return found.OTHER_FOLDER(file=last, folder=":".join(folders), ours=CERTS)
    return None


def _pulls_locally(texts: Mapping[str, str], main: str) -> bool:
    """True if the CRI plugin pulls images as before 2.1, which reads all folders."""
    keys = ("use_local_image_pull", "discard_unpacked_layers")
    plugins = [plugin for _, plugin in _plugins(texts, main)]
    return any(lookup_path(plugin, (key,)) for plugin in plugins for key in keys)


def _plugins(texts: Mapping[str, str], main: str) -> Iterator[tuple[str, Any]]:
    """The tables of the CRI plugins in all files that containerd reads, with their paths."""
    for path in read_files(texts, main):
        plugins = parse_tables(texts[path]).get("plugins")
        for name in (*CRI.values(), _IMAGES):
            yield path, lookup_path(plugins, (name,))


def _folders(text: Any) -> list[str]:
    return [folder for folder in str(text or "").split(":") if folder]


def _cni_programs(data: Data, table: Path, context: Context, record: EditRecord) -> dict[Path, Any]:
    """The setting of the folder of CNI plugins: one folder, or from 2.1 on a list.

    containerd does not start if a file sets `bin_dir` and a list that is not the default.
    """
    one, several = (*table, "bin_dir"), (*table, "bin_dirs")
    if not context.has("cni-bin-dirs") or lookup_path(data, one):
        return {one: CNI}
    if is_our_value(data, several, record):
        return {several: record.values[several]}
    there = lookup_path(data, several, [])
    return {} if CNI in there else {several: [*there, CNI]}


def _plan(facts: NodeFacts, runtime: Runtime, merged: Merged, text: str | None) -> RuntimePlan:
    path = runtime.config_path
    file = facts.files.get(path)
    mode = file.mode if file and file.content is not None else 0o644
    change = None
    if merged.changed and not merged.blocked:
        change = ConfigChange(
            path=path,
            before=text,
            after=merged.text,
            mode=mode,
            sha256=hashlib.sha256(text.encode()).hexdigest() if text is not None else "",
            validate=("containerd", "--config", "{path}", "config", "dump"),
        )
    return RuntimePlan(
        key="containerd",
        name="containerd",
        unit=runtime.unit,
        config=path,
        change=change,
        activation="restart" if change and runtime.running else "none",
        reason=f"{path} changes" if change else "",
        record=merged.record,
        findings=(),
        socket="/run/containerd/containerd.sock",
        running=runtime.running,
    )
