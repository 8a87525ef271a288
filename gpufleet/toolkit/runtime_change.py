"""From a merged configuration to the change of a file and the plan of its runtime. Pure."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass

from gpufleet.facts.model import Runtime
from gpufleet.formats.json_text import JSON_FORMAT
from gpufleet.formats.model import Merged
from gpufleet.toolkit.config import containerd, docker
from gpufleet.toolkit.config.tables import parse_tables
from gpufleet.toolkit.findings import runtimes as found
from gpufleet.toolkit.runtime_layers import containerd_socket
from gpufleet.toolkit.runtime_model import ConfigChange, Context, RuntimePlan

_PLAIN_KEY = re.compile(r"[A-Za-z0-9_-]+")
# A line of `containerd config dump` and of `crio config` that shows that nvidia is registered.
_TABLE = r"""runtimes\.['"]?nvidia['"]?\]"""


@dataclass(frozen=True, slots=True)
class RuntimeFile:
    """The file of one runtime that gpufleet changes."""

    path: str
    text: str | None
    merged: Merged


def change_of(target: RuntimeFile, context: Context, *, serving: bool) -> ConfigChange | None:
    """The change of one file, or None if it stays. `serving`: it registers nvidia."""
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
        validate=_validate(context),
        read_back=_read_back(context) if serving else (),
        expected=_TABLE if serving and context.runtime.name != "docker" else "",
    )


def _read_back(context: Context) -> tuple[str, ...]:
    if context.runtime.name == "containerd":
        return ("containerd", "--config", context.main_path, "config", "dump")
    return ("crio", "config") if context.runtime.name == "crio" else ()


def assemble_plan(target: RuntimeFile, context: Context, *, serving: bool) -> RuntimePlan:
    """The plan of a runtime whose file changes, before its activation is chosen."""
    merged, runtime = target.merged, context.runtime
    findings = list(merged.notes)
    if context.service.active == "failed":
        findings.append(found.RUNTIME_FAILED(unit=runtime.unit))
    if context.settings.cdi and runtime.name != "crio" and not context.has("cdi"):
        since, version = context.known.minimum("cdi"), runtime.version or "unknown"
        findings.append(found.CDI_UNSUPPORTED(runtime=runtime.name, version=version, since=since))
    return RuntimePlan(
        key=context.key,
        name=runtime.name,
        unit=runtime.unit,
        config=target.path,
        change=change_of(target, context, serving=serving),
        default=context.settings.default_runtime,
        user_keys=_user_keys(runtime, target),
        record=merged.record,
        findings=tuple(findings),
        socket=_socket(context),
        running=runtime.running,
        serves=serving,
    )


def _socket(context: Context) -> str:
    if context.runtime.unit != "containerd.service":
        return ""
    return containerd_socket(context.text(context.main_path), context.service.exec_start)


def _sha256(text: str | None) -> str:
    return hashlib.sha256((text or "").encode()).hexdigest()


def _validate(context: Context) -> tuple[str, ...]:
    if context.runtime.name == "docker":
        able = context.has("validate")
        return ("dockerd", "--validate", "--config-file", "{path}") if able else ()
    if context.runtime.name == "containerd":
        return ("containerd", "--config", "{path}", "config", "dump")
    return ("crio", "--config", "{path}", "config")


def _user_keys(runtime: Runtime, target: RuntimeFile) -> tuple[str, ...]:
    """The user's own settings, one or two levels deep, for the checks."""
    if target.text is None or target.merged.blocked:
        return ()
    undo = docker.unmerge_docker if runtime.name == "docker" else containerd.unmerge_containerd
    text = undo(target.text, target.merged.record).text or ""
    data = (
        JSON_FORMAT.parse(text.lstrip("\ufeff")) if runtime.name == "docker" else parse_tables(text)
    )
    keys = []
    for key, value in data.items():
        if runtime.name == "docker" and isinstance(value, dict) and value:
            keys += [f"{key}.{inner}" for inner in value if _PLAIN_KEY.fullmatch(inner)]
        elif key not in ("default-runtime", "plugins", "version") and _PLAIN_KEY.fullmatch(key):
            keys.append(key)
    return tuple(keys)
