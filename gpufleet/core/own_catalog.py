"""Reads the user's own entries of the catalog: YAML files in catalog.d/ of the working directory.

A file has the name and the structure of the catalog's file that it changes. Its entries are merged
when the catalog is loaded, so every type that validates the catalog validates them, too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

from gpufleet.core.findings import Finding
from gpufleet.core.findings.own_catalog import OWN_FILE_UNREAD
from gpufleet.core.limits import MIB
from gpufleet.core.load_settings import problem_of
from gpufleet.core.stopped import Stopped
from gpufleet.core.yaml_events import LOADER, parse_yaml_events

OWN_FOLDER = "catalog.d"
OWN_FILES = {  # name of a file -> the data file that it changes, ROOM/NAME
    "branches.yaml": "driver/branches",
    "charts.yaml": "helm/charts",
    "containerd.yaml": "containerd/containerd",
    "gpus.yaml": "driver/gpus",
    "kubernetes.yaml": "kubernetes/kubernetes",
    "repositories.yaml": "packages/repositories",
    "runtime_support.yaml": "status/runtime_support",
    "toolkit.yaml": "toolkit/toolkit",
}
IDENTITIES = {  # lists that are merged: their key -> the key of an entry that names it
    "branches": "branch",
    "generations": "name",
    "gpus": "id",
    "keys": "file",
    "minors": "minor",
    "picks": "from",
    "revoked": "file",
    "runtimes": "name",
    "versions": "version",
}
MAX_OWN_BYTES = MIB  # of one file
PROBLEMS = {
    "missing": "is missing",
    "extra_forbidden": "is not a key of the catalog",
    "tuple_type": "must be a list",
    "dict_type": "must be a mapping",
    "model_type": "must be a mapping",
}
SHOWN_CHARS = 60  # of a key in a message
_LOGIN = re.compile(r"//[^/\s]*@")  # in a URL
_NUMBERED = re.compile(r"v?\d+(\.\d+)*")
_SOURCE = (".yaml", ".yml")


@dataclass(frozen=True, slots=True)
class OwnCatalog:
    """The content of catalog.d/. `files`: data file, ROOM/NAME -> its own entries."""

    files: Mapping[str, Any] = field(default_factory=dict)
    problems: tuple[Finding, ...] = ()


class OwnFileRefused(ValueError):
    """A file that cannot be used. The text says why, as the end of a sentence."""


def read_own_catalog() -> OwnCatalog:
    """The own entries of this working directory. Reads them only once."""
    try:
        return _read(Path.cwd() / OWN_FOLDER)
    except OSError as error:  # of the working directory, which may have been removed
        why = f"the working directory cannot be read: {error.strerror or error}"
        return OwnCatalog({}, (OWN_FILE_UNREAD(file=OWN_FOLDER, why=why),))


def has_own_catalog() -> bool:
    """True if this working directory has a catalog.d/ with files for the catalog."""
    own = read_own_catalog()
    return bool(own.files or own.problems)


@lru_cache(maxsize=1)
def _read(folder: Path) -> OwnCatalog:
    files: dict[str, Any] = {}
    problems = []
    try:
        paths = sorted(folder.iterdir()) if folder.exists() else []
    except OSError as error:
        why = error.strerror or str(error)
        return OwnCatalog({}, (OWN_FILE_UNREAD(file=OWN_FOLDER, why=why),))
    for path in paths:
        if path.name.startswith(".") or path.suffix not in _SOURCE:
            continue
        try:
            if content := _content(path):
                files[OWN_FILES[path.name]] = content
        except OwnFileRefused as error:
            problems.append(OWN_FILE_UNREAD(file=f"{OWN_FOLDER}/{path.name}", why=error))
    return OwnCatalog(files, tuple(problems))


def _content(path: Path) -> dict[str, Any]:
    """The entries of a file. Raises OwnFileRefused."""
    if path.name not in OWN_FILES:
        near = get_close_matches(path.name, OWN_FILES, n=1)
        hint = f"did you mean {near[0]}" if near else f"the names are {', '.join(OWN_FILES)}"
        raise OwnFileRefused(f"the catalog has no file of that name that can be changed; {hint}")
    try:
        if not path.is_file():  # a pipe would never end
            raise OwnFileRefused("it is not a regular file")
        with path.open("rb") as source:
            data = source.read(MAX_OWN_BYTES + 1)
    except OSError as error:
        raise OwnFileRefused(error.strerror or str(error)) from error
    if len(data) > MAX_OWN_BYTES:
        raise OwnFileRefused(f"it has more than {MAX_OWN_BYTES // MIB} MiB")
    return _parsed(data)


def _parsed(data: bytes) -> dict[str, Any]:
    try:
        text = data.decode("utf-8")
        for event in parse_yaml_events(text):
            if isinstance(event, yaml.AliasEvent):
                raise OwnFileRefused("it has an alias (*name), which gpufleet does not read here")
        if twice := next(_duplicates(yaml.compose(text, Loader=LOADER)), ""):
            raise OwnFileRefused(f"it has the key {twice[:SHOWN_CHARS]} twice")
        found = yaml.load(text, Loader=LOADER)
    except UnicodeDecodeError:
        raise OwnFileRefused("it is not UTF-8") from None
    except OwnFileRefused:
        raise
    except yaml.MarkedYAMLError as error:  # its text quotes the file, which may have a password
        line = f", line {error.problem_mark.line + 1}" if error.problem_mark else ""
        raise OwnFileRefused(f"it is not YAML: {error.problem}{line}") from None
    except (yaml.YAMLError, ValueError, TypeError, OverflowError, RecursionError):
        raise OwnFileRefused("it is not YAML, or has a value that cannot be read") from None
    if found is not None and not isinstance(found, dict):
        raise OwnFileRefused("it must be a mapping, as the catalog's file is")
    if any(_LOGIN.search(text) for text in _texts(found)):
        raise OwnFileRefused(
            "it has a login in a URL; the settings driver_repo_logins, "
            "toolkit_repo_logins and cluster_chart_logins name files with logins"
        )
    return found or {}


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _texts(key)
            yield from _texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner)
    elif isinstance(value, str):
        yield value


def _duplicates(node: Any) -> Iterator[str]:
    """Keys that a mapping has more than once."""
    if isinstance(node, yaml.MappingNode):
        seen = set()
        for key, value in node.value:
            if key.value in seen:
                yield str(key.value)
            seen.add(key.value if isinstance(key.value, str) else id(key))
            yield from _duplicates(value)
    elif isinstance(node, yaml.SequenceNode):
        for value in node.value:
            yield from _duplicates(value)


def merge_own_entries(name: str, shipped: dict[str, Any]) -> dict[str, Any]:
    """A data file, ROOM/NAME, with the own entries. Raises Stopped if catalog.d/ has files that
    cannot be read."""
    own = read_own_catalog()
    if own.problems and name in OWN_FILES.values():
        raise Stopped(*own.problems)
    merged: dict[str, Any] = _merged(shipped, own.files[name]) if name in own.files else shipped
    return merged


def _merged(shipped: Any, own: Any, key: object = "") -> Any:
    """Mappings are merged by key, lists of IDENTITIES by the name of each entry. Anything else
    replaces the catalog's value."""
    if isinstance(shipped, dict) and isinstance(own, dict):
        inner = {each: _merged(shipped.get(each), value, each) for each, value in own.items()}
        whole = {**shipped, **inner}
        return dict(sorted(whole.items(), key=_order)) if _is_numbered(whole) else whole
    if key in IDENTITIES and isinstance(shipped, list) and isinstance(own, list):
        return _merged_list(shipped, own, IDENTITIES[str(key)])
    return own


def _merged_list(shipped: Sequence[Any], own: Sequence[Any], identity: str) -> list[Any]:
    result = list(shipped)
    for entry in own:
        named = entry_name(entry, identity)
        same = (at for at, each in enumerate(result) if entry_name(each, identity) == named)
        at = next(same, None)
        if at is None:
            result.append(entry)
        else:
            result[at] = _with_known_versions(result[at], _merged(result[at], entry))
    if identity == "from":  # of picks, a later one takes precedence
        result.sort(key=lambda entry: _order((entry_name(entry, identity), None)))
    return result


def _with_known_versions(shipped: Any, merged: Any) -> Any:
    """A merged entry. The catalog's newest version of a branch stays known: it becomes one of the
    other versions."""
    before = shipped.get("newest") if isinstance(shipped, dict) else None
    if not before or not isinstance(merged, dict) or merged.get("newest") == before:
        return merged
    versions = merged.get("versions", [])
    if not isinstance(versions, list) or before in versions:
        return merged
    return {**merged, "versions": [*versions, before]}


def entry_name(entry: Any, identity: str) -> Any:
    """The value that names an entry of a list. A text names itself."""
    return entry.get(identity) if isinstance(entry, dict) else entry


def shown_name(key: str, name: object) -> str:
    """The name of an entry of a list for a message: the id of a GPU as the catalog writes it."""
    return f"{name:#06x}" if key == "gpus" and isinstance(name, int) else str(name)


def _is_numbered(mapping: Mapping[Any, Any]) -> bool:
    return all(isinstance(each, str) and _NUMBERED.fullmatch(each) for each in mapping)


def _order(item: tuple[Any, Any]) -> list[int]:
    return [int(number) for number in re.findall(r"\d{1,9}", str(item[0]))]


def own_problem(name: str, data: Any, error: Mapping[str, Any]) -> Finding | None:
    """The finding for an error of a data file, ROOM/NAME, or None if it has no own entries.

    `data`: the merged content; `error`: of pydantic, with its place in this content.
    """
    if name not in read_own_catalog().files:
        return None
    file = next(file for file, changed in OWN_FILES.items() if changed == name)
    place = _place(data, error["loc"])
    problem = PROBLEMS.get(error["type"]) or problem_of(error)
    return OWN_FILE_UNREAD(file=f"{OWN_FOLDER}/{file}", why=f"{place} {problem}")


def _place(data: Any, steps: Sequence[object]) -> str:
    """The place of an error: branches[625].newest for ("branches", 19, "newest")."""
    text, key = "", ""
    for step in steps:
        inner = None
        if isinstance(step, int) and isinstance(data, list) and step < len(data):
            inner = data[step]
            name = entry_name(inner, IDENTITIES.get(key, ""))
            known = name is not None and name is not inner
            shown = shown_name(key, name) if known else f"entry {step + 1}"
            text += f"[{shown[:SHOWN_CHARS]}]"
        else:
            inner = data.get(step) if isinstance(data, dict) else None
            text += f".{step}" if text else str(step)
            key = str(step)
        data = inner
    return text or "the file"
