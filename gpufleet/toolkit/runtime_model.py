"""The plan of one container runtime, and its inputs."""

from __future__ import annotations

import posixpath
from dataclasses import dataclass, field
from typing import Any, Literal

from gpufleet.core.findings import Finding
from gpufleet.core.versions import version_tuple
from gpufleet.facts.model import NodeFacts, Runtime, Service
from gpufleet.formats.model import EditRecord
from gpufleet.host.file_write import FileWrite
from gpufleet.toolkit.config.containerd_layers import NEWEST
from gpufleet.toolkit.config.desired import Reads
from gpufleet.toolkit.findings import runtimes as found
from gpufleet.toolkit.models import CatalogRuntime, RuntimeConfig, ToolkitCatalog
from gpufleet.toolkit.record import (
    ChangesPart,
    FilePart,
    PendingPart,
    RuntimePart,
    ToolkitEntry,
    recorded_runtimes,
)
from gpufleet.toolkit.settings import ToolkitSettings

Activation = Literal["none", "reload", "restart"]


@dataclass(frozen=True, slots=True)
class ConfigChange:
    """A configuration file to write, or to remove if `after` is None.

    It is written only if the host's file still has `sha256` ("": no file). `validate` is the
    command of the runtime's own parser, with `{path}` for the new file. Empty if the runtime's
    version has no parser.
    """

    path: str
    before: str | None
    after: str | None
    mode: int
    sha256: str
    validate: tuple[str, ...]
    read_back: tuple[str, ...] = ()  # prints the effective configuration
    expected: str = ""  # extended regular expression of a line in its output

    @property
    def shown(self) -> FileWrite:
        """For the output of --diff, which takes a file that goes for an empty one."""
        if self.after is None:
            return FileWrite(self.path, "")
        return FileWrite(self.path, self.after, self.mode)


@dataclass(frozen=True, slots=True)
class RuntimePlan:
    """One runtime: the change of its configuration, and its activation."""

    key: str  # as in NodeFacts.runtimes
    name: str  # docker, containerd, crio
    unit: str
    config: str  # path of the file with our settings
    findings: tuple[Finding, ...]
    change: ConfigChange | None = None
    activation: Activation = "none"
    reason: str = ""  # why it must be restarted or reloaded
    postponed: bool = False  # a restart is needed, and left to the user
    default: bool = False
    user_keys: tuple[str, ...] = ()  # the user's settings that must stay
    record: EditRecord = field(default_factory=EditRecord)
    started: str = ""  # last start of the unit, in microseconds since boot
    others: tuple[ConfigChange, ...] = ()  # files that the runtime read in an earlier run
    earlier: tuple[tuple[str, EditRecord], ...] = ()  # such files that still have our settings
    socket: str = ""  # containerd's, to list its plugins
    running: bool = True
    serves: bool = False  # the unit has the runtime nvidia afterwards
    spare: bool = False  # do not restart it if that would stop containers

    @property
    def changes(self) -> tuple[ConfigChange, ...]:
        """Every file that is written or removed, the effective one last."""
        return (*self.others, *((self.change,) if self.change else ()))

    @property
    def managed(self) -> bool:
        """True if the runtime gets GPU support, from our configuration or its own."""
        cri_disabled = found.CRI_DISABLED.code
        return not any(note.blocks or note.code == cri_disabled for note in self.findings)

    def describe(self) -> dict[str, Any]:
        """The plan as data for preflight's JSON."""
        same = ("config", "activation", "reason", "postponed")
        return {"changes": bool(self.changes), **{name: getattr(self, name) for name in same}}

    def as_record(self) -> RuntimePart:
        """The record's entry of this runtime."""
        part = RuntimePart(
            config=self.config,
            default=self.default,
            user_keys=list(self.user_keys),
            changes=ChangesPart.of(self.record),
        )
        earlier = [
            FilePart(config=path, changes=ChangesPart.of(record)) for path, record in self.earlier
        ]
        return part.model_copy(update={"earlier": earlier}) if earlier else part


@dataclass(frozen=True, slots=True)
class Context:
    """The inputs of the plan of one runtime."""

    key: str  # as in NodeFacts.runtimes
    runtime: Runtime
    settings: ToolkitSettings
    facts: NodeFacts
    catalog: ToolkitCatalog
    first: bool = False  # this run installs the toolkit's packages for the first time
    systemd_cgroups: bool = False  # a kubelet of this run will use systemd's control groups

    @property
    def known(self) -> CatalogRuntime:
        """The catalog's entry of the runtime."""
        return next(r for r in self.catalog.runtimes.runtimes if r.name == self.runtime.name)

    @property
    def owner(self) -> RuntimeConfig | None:
        """The catalog's entry, if k3s or RKE2 regenerates the file at every start."""
        for config in self.known.configs:
            if config.generated and self.runtime.unit in (config.unit, config.agent_unit):
                return config
        return None

    def has(self, feature: str) -> bool:
        """True if the runtime's version has a feature of runtimes.yaml; an unknown one has not."""
        since = self.known.minimum(feature)
        return bool(since) and version_tuple(self.runtime.version) >= version_tuple(since)

    @property
    def newest_version(self) -> int:
        """containerd: the newest file version that the program supports; it honours older names.

        1.x reads a file of version 3 as version 2, and ignores the names of version 3.
        """
        if not self.runtime.version:
            return NEWEST
        return 4 if self.has("config-v4") else 3 if self.has("config-v3") else 2

    @property
    def reads(self) -> Reads:
        """Non-JSON texts that docker's version accepts."""
        return Reads(self.has("blank-file"), self.has("byte-order-mark"))

    @property
    def main_path(self) -> str:
        """The file that the runtime reads first."""
        if self.key == "containerd" and self.settings.containerd_config:
            return self.settings.containerd_config
        return self.runtime.config_path

    def text(self, path: str) -> str | None:
        """A file's text, or None if it does not exist or cannot be read."""
        return self.facts.texts.get(path)

    @property
    def service(self) -> Service:
        """The runtime's unit. All its fields are empty if the host does not have it."""
        return self.facts.services.get(self.runtime.unit, Service(self.runtime.unit, "", "", ""))

    @property
    def files(self) -> dict[str, EditRecord]:
        """Our recorded changes of the runtime's files, by path.

        The effective file of the last run is first, then those of earlier runs.
        """
        runtime = recorded_runtimes(self.facts).get(self.key, RuntimePart())
        records = {
            part.config: part.changes.record if part.changes else EditRecord()
            for part in (runtime, *runtime.earlier)
            if part.config
        }
        return {path: record for path, record in records.items() if record}

    def record(self, path: str) -> EditRecord:
        """Our changes of the file at `path`, under this name or another one."""
        real = self.real_path(path)
        files = self.files
        return next((files[name] for name in files if self.real_path(name) == real), EditRecord())

    def real_path(self, path: str) -> str:
        """The target of a path that is a symbolic link; follows one step."""
        file = self.facts.files.get(path)
        link = file.link if file else ""
        return posixpath.normpath(posixpath.join(posixpath.dirname(path), link)) if link else path

    @property
    def pending(self) -> str | None:
        """Why the unit needs a restart since an earlier run; None once it was restarted."""
        toolkit = self.facts.provenance.entry(ToolkitEntry)
        entry = toolkit.pending.get(self.runtime.unit, PendingPart())
        same_start = entry.started == self.service.started
        same_boot = entry.boot_id == self.facts.boot_id
        return entry.reason if same_boot and same_start else None
