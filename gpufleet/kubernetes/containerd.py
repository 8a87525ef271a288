"""What a kubelet requires of containerd's configuration. Pure."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

from gpufleet.core.findings import Finding
from gpufleet.facts.model import NodeFacts, Runtime
from gpufleet.kubernetes.findings import choice as found
from gpufleet.kubernetes.record import KubernetesEntry
from gpufleet.toolkit.config.containerd import SHIM
from gpufleet.toolkit.config.containerd_layers import CRI, cri_disabled
from gpufleet.toolkit.config.containerd_options import DRIVER, spellings
from gpufleet.toolkit.config.desired import DesiredRuntime
from gpufleet.toolkit.config.edits import Data, lookup
from gpufleet.toolkit.config.model import Merged, Path, Record
from gpufleet.toolkit.config.tables import Wanted, is_ours, merge_settings, unmerge_settings
from gpufleet.toolkit.models import ToolkitCatalog
from gpufleet.toolkit.runtime_model import ConfigChange, RuntimePlan

CERTS = "/etc/containerd/certs.d"
CNI = "/opt/cni/bin"  # where the package kubernetes-cni has its programs
_IMAGES = "io.containerd.cri.v1.images"  # from version 3 of the file on


@dataclass(frozen=True, slots=True)
class Required:
    """What the kubelet requires: its driver of control groups, the pause image ("": any)."""

    systemd_cgroups: bool
    pause: str


def plan_containerd(
    facts: NodeFacts,
    catalog: ToolkitCatalog,
    required: Required,
    text: str | None,
) -> tuple[RuntimePlan | None, tuple[Finding, ...]]:
    """The change of containerd's file. `text`: as the roles before leave it."""
    runtime = facts.runtimes["containerd"]
    path = runtime.config_path
    if cri_disabled(text):
        return None, (found.CRI_DISABLED(file=path),)
    entry = facts.provenance.entry(KubernetesEntry).containerd
    record = entry.changes.record if entry.changes and entry.config == path else Record()
    desired = DesiredRuntime(file=path, new_version=_new_version(runtime))

    def wanted_of(data: Data) -> Wanted:
        return Wanted(_wanted(data, required, desired.new_version, record), (), "")

    skeleton = f"version = {desired.new_version}\n"
    merged = merge_settings(text, skeleton, desired, record, wanted_of, "containerd")
    return _plan(facts, runtime, merged, text), merged.notes


def plan_without(facts: NodeFacts, record: Record, path: str) -> RuntimePlan | None:
    """The change that takes our settings out again; None if there are none."""
    runtime = facts.runtimes.get("containerd")
    file = facts.files.get(path)
    if runtime is None or file is None or not record:
        return None
    merged = unmerge_settings(file.content, record, path, "containerd")
    return _plan(facts, runtime, merged, file.content)


def _wanted(data: Data, required: Required, new_version: int, record: Record) -> dict[Path, Any]:
    wanted: dict[Path, Any] = {}
    version = data.get("version", 1) if data else new_version
    if not data:
        wanted[("version",)] = new_version
    runtime: Path = ("plugins", CRI.get(version, CRI[2]))
    images: Path = ("plugins", _IMAGES) if version >= 3 else runtime
    pinned = ("pinned_images", "sandbox") if version >= 3 else ("sandbox_image",)
    default = lookup(data, (*runtime, "containerd", "default_runtime_name"), "runc")
    base = "runc" if default == "nvidia" else default
    tables: Path = (*runtime, "containerd", "runtimes")
    for name in (base, "nvidia"):
        entry = lookup(data, (*tables, name))
        names = spellings(entry or {}, DRIVER) or (DRIVER,)
        options: list[Path] = [(*tables, name, "options", key) for key in names]
        if all(bool(lookup(data, each)) == required.systemd_cgroups for each in options):
            ours = (each for each in ((*tables, name), *options) if is_ours(data, each, record))
            wanted |= {each: record.values[each] for each in ours}
            continue
        if entry is not None:
            wanted |= dict.fromkeys(options, required.systemd_cgroups)
        elif name == base:  # built in; 1.x knows nothing of it once the file names it
            entry = {"runtime_type": SHIM, "options": {DRIVER: True}}
            wanted |= {(*tables, name): entry}
    if required.pause:
        sandbox: Path = (*images, *pinned)
        wanted[sandbox] = required.pause
    registries: Path = (*images, "registry", "config_path")
    programs: Path = (*runtime, "cni", "bin_dir")
    return {**wanted, registries: CERTS, programs: CNI}


def _new_version(runtime: Runtime) -> int:
    return 3 if runtime.version.startswith("2") else 2


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
        postponed=False,
        default=False,
        user_keys=(),
        record=merged.record,
        findings=(),
        socket="/run/containerd/containerd.sock",
        running=runtime.running,
    )
