"""The plan of one container runtime, and what it is made from."""

from __future__ import annotations

import posixpath
from dataclasses import dataclass
from typing import Any, Literal

from gpufleet.core.findings import Finding
from gpufleet.core.versions import release
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
    """A configuration file to write, or to remove where `after` is None.

    Write it only while the host's file still has `sha256` ("" where there is none). `validate` is
    the runtime's own parser, with `{path}` for the new file beside the old one; empty where the
    runtime's version has none.
    """

    path: str
    before: str | None
    after: str | None
    mode: int
    sha256: str
    validate: tuple[str, ...]
    read_back: tuple[str, ...] = ()  # prints the configuration as the runtime takes it
    expected: str = ""  # extended regular expression of a line that it must print then

    @property
    def write(self) -> FileWrite | None:
        return None if self.after is None else FileWrite(self.path, self.after, self.mode)


@dataclass(frozen=True, slots=True)
class RuntimePlan:
    """One runtime: the change of its configuration, and what makes the change count."""

    key: str  # as in NodeFacts.runtimes
    name: str  # docker, containerd, crio
    unit: str
    config: str  # path of the file that holds what is ours
    change: ConfigChange | None
    activation: Activation
    reason: str  # why it has to be restarted or reloaded
    postponed: bool  # a restart is needed, and left to the user
    default: bool
    user_keys: tuple[str, ...]  # settings of the user's that must survive
    record: Record
    findings: tuple[Finding, ...] = ()
    started: str = ""  # when the unit was started last, in microseconds since the boot
    others: tuple[ConfigChange, ...] = ()  # of files that the runtime read in an earlier run
    earlier: tuple[tuple[str, Record], ...] = ()  # such files that still hold what is ours
    socket: str = ""  # containerd's, where its plugins can be asked for
    running: bool = True
    serves: bool = False  # the unit knows the runtime nvidia afterwards
    spare: bool = False  # containers that its restart would stop are to be left alone

    @property
    def changes(self) -> tuple[ConfigChange, ...]:
        """Every file that is written or removed, the one that counts last."""
        return (*self.others, *((self.change,) if self.change else ()))

    @property
    def managed(self) -> bool:
        """Whether the runtime is to serve GPUs, by our configuration or by its own."""
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
        """What provenance keeps of this runtime."""
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
    """What every runtime's plan is made from."""

    settings: ToolkitSettings
    facts: NodeFacts
    catalog: ToolkitCatalog
    first: bool  # the toolkit's packages are installed in this run for the first time

    def known(self, runtime: Runtime) -> KnownRuntime:
        return next(r for r in self.catalog.runtimes.runtimes if r.name == runtime.name)

    def has(self, runtime: Runtime, feature: str) -> bool:
        """Whether the runtime's version has a feature of runtimes.yaml; unknown counts as no."""
        since = self.known(runtime).minimum(feature)
        return bool(since) and release(runtime.version) >= release(since)

    def newest_version(self, runtime: Runtime) -> int:
        """containerd: the newest version of its file that the program knows; older names it heeds.

        1.x takes a file of version 3 for one of version 2, and ignores the names of version 3.
        """
        if not runtime.version:
            return containerd.NEWEST
        return 4 if self.has(runtime, "config-v4") else 3 if self.has(runtime, "config-v3") else 2

    def reads(self, runtime: Runtime) -> Reads:
        """What docker's version reads beside JSON."""
        return Reads(self.has(runtime, "blank-file"), self.has(runtime, "byte-order-mark"))

    def files(self, key: str) -> dict[str, Record]:
        """By path, what the host's record says that we changed in each file of a runtime.

        The file that counted in the last run comes first, then those of runs before it.
        """
        runtime = recorded_runtimes(self.facts).get(key, RuntimePart())
        records = {
            part.config: part.changes.record if part.changes else Record()
            for part in (runtime, *runtime.earlier)
            if part.config
        }
        return {path: record for path, record in records.items() if record}

    def record(self, key: str, path: str) -> Record:
        """What we changed in the file at `path`, under this name or another one."""
        real = self.real_path(path)
        files = self.files(key)
        return next((files[name] for name in files if self.real_path(name) == real), Record())

    def real_path(self, path: str) -> str:
        """Where a file is, when its path is a symbolic link; one step is followed."""
        file = self.facts.files.get(path)
        link = file.link if file else ""
        return posixpath.normpath(posixpath.join(posixpath.dirname(path), link)) if link else path

    def pending(self, unit: str) -> str:
        """Why an earlier run said that the unit needs a restart; "" once it was started anew."""
        toolkit = self.facts.provenance.entry(ToolkitEntry)
        entry = toolkit.pending.get(unit, PendingPart())
        same_start = entry.started == self.started(unit)
        same_boot = entry.boot_id == self.facts.boot_id
        return entry.reason if same_boot and same_start else ""

    def started(self, unit: str) -> str:
        """When the unit was started last, as far as the host knows."""
        service = self.facts.services.get(unit)
        return service.started if service else ""
