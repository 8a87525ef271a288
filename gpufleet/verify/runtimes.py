"""A container runtime on a host under check, from the runtime's own output."""

from __future__ import annotations

from functools import cached_property
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from gpufleet.core.merge import value_at
from gpufleet.verify.parse import json_mapping, parse_units, toml_values
from gpufleet.verify.probe import COMMAND_MISSING, Output

if TYPE_CHECKING:
    from gpufleet.verify.node import CheckedNode

RUNTIME_NAMES = ("docker", "containerd", "crio")
DEFAULT_CONFIGURATION = {
    "docker": "/etc/docker/daemon.json",
    "containerd": "/etc/containerd/config.toml",
    "crio": "/etc/crio/crio.conf",
}
CRI_NAMES = {"cri", "io.containerd.grpc.v1.cri", "io.containerd.cri.v1.runtime"}
RUNTIME_UNITS = {"docker": "docker.service", "crio": "crio.service"}
RESOLVED_SECTIONS = {"containerd": "containerd-dump", "crio": "crio-validate"}


def configuration_path(node: CheckedNode, name: str) -> str:
    """A runtime's main configuration file. The record may name a drop-in instead."""
    record = (node.toolkit.get("runtimes") or {}).get(name) or {}
    path = PurePosixPath(record.get("config") or DEFAULT_CONFIGURATION[name])
    if name == "containerd" and node.data.get("toolkit_containerd_config"):
        return str(node.data["toolkit_containerd_config"])
    if path.parent.name.endswith(".d"):
        return str(path.parent.parent / PurePosixPath(DEFAULT_CONFIGURATION[name]).name)
    return str(path)


class CheckedRuntime:
    """docker, containerd or CRI-O on one host. The runtime itself reports all values."""

    def __init__(self, name: str, node: CheckedNode) -> None:
        self.name, self._node = name, node

    def section(self, name: str) -> Output:
        """A section of runtimes.sh."""
        return self._node.runtime_sections.get(name, COMMAND_MISSING)

    @property
    def record(self) -> dict[str, Any]:
        return dict((self._node.toolkit.get("runtimes") or {}).get(self.name) or {})

    @property
    def path(self) -> str:
        return configuration_path(self._node, self.name)

    @property
    def unit(self) -> str:
        return RUNTIME_UNITS.get(self.name) or self.section("containerd-unit").text.strip()

    @property
    def active(self) -> str:
        """systemd's state: active, inactive, failed, or "not installed" without a unit."""
        state = parse_units(self.section("runtime-services").text).get(self.unit, {})
        if state.get("LoadState", "not-found") == "not-found":
            return "not installed"
        return state.get("ActiveState", "unknown")

    @cached_property
    def configuration(self) -> dict[str, Any]:
        """The parsed main configuration file, or {} if it is missing or unreadable."""
        section = self.section(f"{self.name}-config")
        if not section.ok:
            return {}
        return json_mapping(section.text) if self.name == "docker" else toml_values(section.text)

    @cached_property
    def refusal(self) -> str | None:
        """Why the runtime's own parser rejects the configuration, or None."""
        if self.name != "docker":
            section = self.section(RESOLVED_SECTIONS[self.name])
            return None if section.ok else section.last
        file, verdict = self.section("docker-config"), self.section("docker-validate")
        if not file.ok:
            return file.last
        if verdict.ok:
            return None
        if "unknown flag" not in verdict.text:
            return verdict.last
        # dockerd before 23.0 cannot validate; another check proves that it runs with this.
        return None if self.configuration else "not a JSON object"

    @cached_property
    def effective(self) -> dict[str, Any]:
        """The configuration with drop-ins and defaults, as the runtime resolves it."""
        if self.name == "docker":
            return self.configuration
        section = self.section(RESOLVED_SECTIONS[self.name])
        return toml_values(section.text) if section.ok else {}

    def _cri_tables(self) -> list[dict[str, Any]]:
        """containerd: the `containerd` table of each CRI plugin. Plugin names differ by version."""
        plugins = self.effective.get("plugins", {})
        tables = [p.get("containerd") for p in plugins.values() if isinstance(p, dict)]
        return [table for table in tables if isinstance(table, dict)]

    @property
    def nvidia_binary(self) -> str | None:
        """Path of the binary of the runtime nvidia, in the effective configuration."""
        if self.name == "docker":
            entry = (self.effective.get("runtimes") or {}).get("nvidia")
            return entry.get("path") if isinstance(entry, dict) else None
        if self.name == "crio":
            path = value_at(self.effective, "crio.runtime.runtimes.nvidia.runtime_path")
            return str(path) if path else None
        for table in self._cri_tables():
            options = table.get("runtimes", {}).get("nvidia", {}).get("options", {})
            # containerd ignores the case of option names. It reads them in order; the last wins.
            names = [key for key in sorted(options) if key.lower() == "binaryname"]
            if names and options[names[-1]]:
                return str(options[names[-1]])
        return None

    @property
    def default(self) -> str:
        """Name of the default runtime in the effective configuration."""
        if self.name == "docker":
            return str(self.effective.get("default-runtime") or "runc")
        if self.name == "crio":
            return str(value_at(self.effective, "crio.runtime.default_runtime"))
        names = [table.get("default_runtime_name") for table in self._cri_tables()]
        return str(next((name for name in names if name), "runc"))

    @property
    def ignorance(self) -> str | None:
        """Why the running daemon lacks the nvidia runtime, or None."""
        if self.name == "docker":
            known = json_mapping(self.section("docker-info").text).get("Runtimes") or {}
            names = ", ".join(known) or "none"
            return None if "nvidia" in known else f"`docker info` lists {names}"
        if self.name == "crio":
            status = self.section("crio-status")
            if not status.ok:
                return f"its configuration is not known: {status.last}"
            return None if "runtimes.nvidia]" in status.text else "`crio status config` has none"
        if self.cri_disabled:
            return "the CRI plugin is in disabled_plugins"
        written, started = self.section("containerd-written"), self.section("containerd-started")
        if not (written.ok and started.ok):
            return f"its age is not known: {written.last}, {started.last}"
        # containerd reads its files only when it starts.
        older = int(written.text) > int(started.text)
        return "started before its configuration was last written" if older else None

    @property
    def cri_faults(self) -> list[str]:
        """containerd: the parts of the CRI plugin that are not loaded, each with its state."""
        rows = [line.split() for line in self.section("containerd-plugins").lines]
        parts = [r for r in rows if len(r) >= 4 and ("cri" in r[0].split(".") or r[1] == "cri")]
        bad = [f"{row[0]} {row[1]}: {row[-1]}" for row in parts if row[-1] != "ok"]
        return bad if parts else ["containerd lists none"]

    @property
    def cri_disabled(self) -> bool:
        return bool(CRI_NAMES & set(self.effective.get("disabled_plugins", [])))

    @property
    def monitor(self) -> str:
        """CRI-O: the monitor that starts containers of the runtime nvidia."""
        path = value_at(self.effective, "crio.runtime.runtimes.nvidia.monitor_path")
        return str(path or "conmon")

    @property
    def images(self) -> list[str]:
        """Names of the images on the host."""
        section = self.section(f"{self.name}-images")
        return [line.strip() for line in section.lines] if section.ok else []
