"""From a merged configuration to the change of a file, the plan of its runtime, and how that takes
effect: by a reload, a restart, or neither. Pure."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, replace

from gpufleet.core.visible import Count
from gpufleet.facts.model import Runtime
from gpufleet.formats.edits import has_path, lookup_path
from gpufleet.formats.model import Merged
from gpufleet.toolkit.config import containerd, docker
from gpufleet.toolkit.config.tables import parse_tables
from gpufleet.toolkit.findings import runtimes as found
from gpufleet.toolkit.runtime_model import Activation, ConfigChange, Context, RuntimePlan

CONTAINERD_SOCKET = "/run/containerd/containerd.sock"  # containerd's default
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
    mode, digest = 0o644, ""
    if file and file.content is not None:
        mode = file.mode
        digest = file.sha256 or hashlib.sha256(file.content.encode()).hexdigest()
    validate, read_back = _commands(context)
    return ConfigChange(
        path=target.path,
        before=target.text,
        after=target.merged.text,
        mode=mode,
        sha256=digest,
        validate=validate,
        read_back=read_back if serving else (),
        expected=_TABLE if serving and context.runtime.name != "docker" else "",
    )


def _commands(context: Context) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Commands that validate a file and that print the effective configuration; () for none."""
    if context.key not in context.facts.runtimes:
        return (), ()
    if context.runtime.name == "docker":
        parser = ("dockerd", "--validate", "--config-file", "{path}")
        return (parser if context.has("validate") else ()), ()
    if context.runtime.name == "crio":
        return ("crio", "--config", "{path}", "config"), ("crio", "config")
    words, main = ("config", "dump"), context.main_path
    return ("containerd", "--config", "{path}", *words), ("containerd", "--config", main, *words)


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
        default=serving and context.settings.default_runtime,
        user_keys=_user_keys(runtime, target),
        record=merged.record,
        findings=tuple(findings),
        socket=_socket(context),
        running=runtime.running,
        serves=serving,
    )


def _socket(context: Context) -> str:
    """containerd's socket, from its command line, its main file, or its default; "" for others."""
    if context.runtime.unit != "containerd.service":
        return ""
    start = context.service.exec_start
    flags = [*docker.flag_values(start, "--address"), *docker.flag_values(start, "-a")]
    named = lookup_path(parse_tables(context.text(context.main_path)), ("grpc", "address"))
    return flags[-1] if flags else str(named or CONTAINERD_SOCKET)


def _user_keys(runtime: Runtime, target: RuntimeFile) -> tuple[str, ...]:
    """The user's own settings, one or two levels deep, for the checks."""
    if target.text is None or target.merged.blocked:
        return ()
    is_docker = runtime.name == "docker"
    undo = docker.unmerge_docker if is_docker else containerd.unmerge_containerd
    text = undo(target.text, target.merged.record).text
    data = docker.parse_daemon_json(text) if is_docker else parse_tables(text)
    keys = []
    for key, value in data.items():
        if is_docker and isinstance(value, dict) and value:
            keys += [f"{key}.{inner}" for inner in value if _PLAIN_KEY.fullmatch(inner)]
        elif key not in ("default-runtime", "plugins", "version") and _PLAIN_KEY.fullmatch(key):
            keys.append(key)
    return tuple(keys)


def with_activation(plan: RuntimePlan, context: Context) -> RuntimePlan:
    """How the change takes effect, without stopping containers unless that is allowed."""
    runtime = context.runtime
    plan = replace(plan, started=context.service.started)
    need, reason = _needed(plan, context)
    if need == "none" or not runtime.running or any(note.blocks for note in plan.findings):
        return plan
    activation = plan.activation
    docker = _docker_that_stops(context) if need == "restart" else None
    # the command that restarts checks again whether containers run
    spare = docker is not None and not context.settings.allow_disruption
    if not context.settings.restart:
        why = "toolkit_restart is off"
    elif docker and spare and docker.containers > 0:
        there = f"{Count(docker.containers):container is|containers are}"
        why = f"{there} running, which it would stop, as live-restore is disabled"
        if docker.unit != runtime.unit:
            why += f" and {docker.unit} requires {runtime.unit}"
        elif plan.change:
            activation = "reload"
    else:
        return replace(plan, activation=need, reason=reason, spare=spare)
    note = found.RESTART_NEEDED(unit=runtime.unit, reason=reason, why=why)
    notes = (*plan.findings, note)
    return replace(plan, activation=activation, reason=reason, postponed=True, findings=notes)


def _docker_that_stops(context: Context) -> Runtime | None:
    """The docker whose containers a restart of the runtime stops. docker 20.10 requires
    containerd.service (docker/docker-ce-packaging#508): systemd restarts both."""
    docker = context.facts.runtimes.get("docker")
    if docker is None or docker.live_restore:
        return None
    service = context.facts.services.get(docker.unit)
    both = context.runtime.unit == "containerd.service" and service and service.with_containerd
    return docker if both or context.runtime.name == "docker" else None


def _needed(plan: RuntimePlan, context: Context) -> tuple[Activation, str]:
    """docker loads runtimes on a reload, but detects CDI and `--gpus` only when it starts.

    k3s and RKE2 detect the toolkit only when they start.
    """
    if earlier := context.pending:
        return "restart", earlier
    if context.runtime.name != "docker":
        owner = context.owner
        if owner and context.first:
            return "restart", f"{owner.variant} detects the toolkit only when it starts"
        return ("restart", f"{plan.config} changes") if plan.change else ("none", "")
    if context.first:
        return "restart", "docker detects the toolkit, for `--gpus`, only when it starts"
    if plan.change is None:
        return "none", ""
    if not plan.serves:
        return "restart", "a reload does not take settings away"
    before, after = map(docker.parse_daemon_json, (plan.change.before, plan.change.after))
    if has_path(after, docker.CDI) != has_path(before, docker.CDI):
        return "restart", "docker reads features.cdi only when it starts"
    gone = [path for path in (("runtimes", "nvidia"), docker.DEFAULT) if has_path(before, path)]
    if any(not has_path(after, path) for path in gone):
        return "restart", "a reload does not take settings away"
    return "reload", "daemon.json changes"
