"""The configuration files of one runtime together, before and after a change. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from gpufleet.toolkit.config import containerd, crio, docker, references
from gpufleet.toolkit.config.edits import NotUnderstood, lookup
from gpufleet.toolkit.config.model import Merged
from gpufleet.toolkit.config.references import References
from gpufleet.toolkit.config.tables import parsed
from gpufleet.toolkit.findings import runtimes as found
from gpufleet.toolkit.runtime_model import Context

SOCKET = "/run/containerd/containerd.sock"  # containerd's default


def imported_texts(
    main: str | None, path: str, texts: Mapping[str, str], without: str | None = None
) -> dict[str, str]:
    """The files that containerd's main file at `path` imports, in containerd's order."""
    names = containerd.imported(main, path, texts)
    return {name: texts[name] for name in names if name != without}


def crio_layers(path: str, texts: Mapping[str, str], without: str | None = None) -> list[str]:
    """crio.conf and its drop-ins, in CRI-O's order."""
    folder = crio.DROP_IN.rpartition("/")[0]
    names = sorted(name for name in texts if name.rpartition("/")[0] == folder)
    return [texts.get(path, ""), *(texts[name] for name in names if name != without)]


def containerd_socket(main: str | None, exec_start: str) -> str:
    """containerd's socket, from its command line, its main file, or its default."""
    flags = [
        value for flag in ("--address", "-a") for value in docker.flag_values(exec_start, flag)
    ]
    named = lookup(parsed(main), ("grpc", "address"))
    return flags[-1] if flags else str(named or SOCKET)


def safe(path: str, merged: Merged, context: Context) -> Merged:
    """The merge, or none of it if the runtime would refer to an undefined one."""
    if not merged.changed or merged.blocked:
        return merged
    before = {name: file.content for name, file in context.facts.files.items()}
    after = {**before, path: merged.text}
    known = _unresolved(path, before, context)
    notes = [
        found.RUNTIME_STILL_NAMED(
            file=path, runtime=context.runtime.name, name=name, setting=setting
        )
        for name, setting in _unresolved(path, after, context).items()
        if name not in known
    ]
    if not notes:
        return merged
    record = merged.record or context.record(path)
    return replace(
        merged, text=before.get(path), changed=False, notes=(*merged.notes, *notes), record=record
    )


def _unresolved(path: str, files: Mapping[str, str | None], context: Context) -> References:
    """Runtimes that are named but not defined, with `path` as one of the files."""
    texts = {name: text for name, text in files.items() if text is not None}
    if context.runtime.name == "docker":
        try:
            data = docker.data(texts.get(path))
        except NotUnderstood:
            return {}
        return references.docker(data, context.service.exec_start)
    main = context.main_path
    if context.runtime.name == "crio":
        return references.crio(crio.effective(crio_layers(main, texts)))
    if path != main and path not in containerd.imported(texts.get(main), main, [path]):
        main = path  # a file that this containerd does not read: checked alone
    imports = imported_texts(texts.get(main), main, texts)
    deep, newest = context.has("drop-ins-merged"), context.newest_version
    data = containerd.effective(texts.get(main), imports.values(), deep, newest)
    return references.containerd(data, context.has("config-v3"))
