"""The plan of one container runtime, and its inputs."""

from __future__ import annotations

import posixpath
from dataclasses import dataclass
from typing import Any, Literal

from gpufleet.core.findings import Finding
from gpufleet.core.versions import version_tuple
from gpufleet.facts.model import NodeFacts, Runtime
from gpufleet.host.file_write import FileWrite
from gpufleet.toolkit import findings as found
from gpufleet.toolkit.config import containerd
from gpufleet.toolkit.config.model import Reads, Record
from gpufleet.toolkit.models import Runtime as KnownRuntime
from gpufleet.toolkit.models import ToolkitCatalog
from gpufleet.toolkit.record import (
    ChangesPart,
    FilePart,
    PendingPart,
    RuntimePart,
    ToolkitEntry,
    recorded_runtimes,
)
from gpufleet.toolkit.settings import ToolkitSettings

CRI_DISABLED = found.CRI_DISABLED.code
Activation = Literal["none", "reload", "restart"]


@dataclass(frozen=True, slots=True)
class ConfigChange:
    """A configuration file to write, or to remove if `after` is None.

    It is written only if the host's file still has `sha256` ("": there is none). `validate` is the
    runtime's own parser, with `{path}` for the new file beside the old one; empty if the runtime's
    version has none.
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
    def write(self) -> FileWrite | None:
        return None if self.after is None else FileWrite(self.path, self.after, self.mode)


@dataclass(frozen=True, slots=True)
class RuntimePlan:
    """One runtime: the change of its configuration, and its activation."""

    key: str  # as in NodeFacts.runtimes
    name: str  # docker, containerd, crio
    unit: str
    config: str  # path of the file with our settings
    change: ConfigChange | None
    activation: Activation
    reason: str  # why it must be restarted or reloaded
    postponed: bool  # a restart is needed, and left to the user
    default: bool
    user_keys: tuple[str, ...]  # the user's settings that must stay
    record: Record
    findings: tuple[Finding, ...] = ()
    started: str = ""  # last start of the unit, in microseconds since boot
    others: tuple[ConfigChange, ...] = ()  # files that the runtime read in an earlier run
    earlier: tuple[tuple[str, Record], ...] = ()  # such files that still have our settings
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
        """Whether the runtime is to support GPUs, by our configuration or its own."""
        return not any(finding.blocks or finding.code == CRI_DISABLED for finding in self.findings)

    def describe(self) -> dict[str, Any]:
        """The plan as data for preflight's JSON."""
        return {
            "config": self.config,
            "changes": bool(self.changes),
            "activation": self.activation,
            "reason": self.reason,
            "postponed": self.postponed,
        }

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
    """The inputs of every runtime's plan."""

    settings: ToolkitSettings
    facts: NodeFacts
    catalog: ToolkitCatalog
    first: bool  # this run installs the toolkit's packages for the first time

    def known(self, runtime: Runtime) -> KnownRuntime:
        return next(r for r in self.catalog.runtimes.runtimes if r.name == runtime.name)

    def has(self, runtime: Runtime, feature: str) -> bool:
        """Whether the runtime's version has a feature of runtimes.yaml; False if unknown."""
        since = self.known(runtime).minimum(feature)
        return bool(since) and version_tuple(runtime.version) >= version_tuple(since)

    def newest_version(self, runtime: Runtime) -> int:
        """containerd: the newest file version that the program supports; it honours older names.

        1.x reads a file of version 3 as version 2, and ignores the names of version 3.
        """
        if not runtime.version:
            return containerd.NEWEST
        return 4 if self.has(runtime, "config-v4") else 3 if self.has(runtime, "config-v3") else 2

    def reads(self, runtime: Runtime) -> Reads:
        """Non-JSON texts that docker's version accepts."""
        return Reads(self.has(runtime, "blank-file"), self.has(runtime, "byte-order-mark"))

    def files(self, key: str) -> dict[str, Record]:
        """Our recorded changes of a runtime's files, by path.

        The effective file of the last run is first, then those of earlier runs.
        """
        runtime = recorded_runtimes(self.facts).get(key, RuntimePart())
        records = {
            part.config: part.changes.record if part.changes else Record()
            for part in (runtime, *runtime.earlier)
            if part.config
        }
        return {path: record for path, record in records.items() if record}

    def record(self, key: str, path: str) -> Record:
        """Our changes of the file at `path`, under this name or another one."""
        real = self.real_path(path)
        files = self.files(key)
        return next((files[name] for name in files if self.real_path(name) == real), Record())

    def real_path(self, path: str) -> str:
        """The target of a path that is a symbolic link; follows one step."""
        file = self.facts.files.get(path)
        link = file.link if file else ""
        return posixpath.normpath(posixpath.join(posixpath.dirname(path), link)) if link else path

    def pending(self, unit: str) -> str:
        """Why the unit needs a restart since an earlier run; "" once it was restarted."""
        toolkit = self.facts.provenance.entry(ToolkitEntry)
        entry = toolkit.pending.get(unit, PendingPart())
        same_start = entry.started == self.started(unit)
        same_boot = entry.boot_id == self.facts.boot_id
        return entry.reason if same_boot and same_start else ""

    def started(self, unit: str) -> str:
        """The unit's last start, as reported by the host."""
        service = self.facts.services.get(unit)
        return service.started if service else ""
