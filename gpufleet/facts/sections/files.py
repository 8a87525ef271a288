"""Parses configuration files, keyrings and CDI specs of a host."""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from gpufleet.facts.gpu import CdiSpec
from gpufleet.facts.model import ManagedFile
from gpufleet.facts.sections import split_records
from gpufleet.facts.sections.hardware import library_version

_MOVED = (
    "the content of {path} has another size than the file: it was cut off, or the file changed "
    "while it was read; run again"
)
_TROUBLE = {
    "odd": "it is not a regular file",
    "large": "it is larger than 128 KiB",
    "unreadable": "it cannot be read",
}


@dataclass(slots=True)
class _Raw:
    """The lines of the section by kind, before the content is split into files."""

    files: list[tuple[int, ManagedFile]] = field(default_factory=list)
    others: list[ManagedFile] = field(default_factory=list)
    links: dict[str, str] = field(default_factory=dict)
    content: bytes = b""


def parse_files(lines: Sequence[str]) -> tuple[dict[str, ManagedFile], dict[str, bytes]]:
    """The files by path, and the bytes of the files that were read."""
    raw = _sort(lines)
    files: dict[str, ManagedFile] = {}
    contents: dict[str, bytes] = {}
    position = 0
    for size, file in raw.files:
        data = raw.content[position : position + size]
        position += size
        if len(data) < size:
            raise ValueError(_MOVED.format(path=file.path))
        digest = hashlib.sha256(data).hexdigest()
        contents[file.path] = data
        try:
            files[file.path] = replace(file, sha256=digest, content=data.decode("utf-8"))
        except UnicodeDecodeError:
            files[file.path] = replace(file, sha256=digest, error="it is not UTF-8 text")
    if position != len(raw.content):
        raise ValueError(_MOVED.format(path="one of the files"))
    for file in raw.others:
        files[file.path] = file
    for path, target in raw.links.items():
        files[path] = replace(files.get(path) or ManagedFile(path, None), link=target)
    return files, contents


def _sort(lines: Sequence[str]) -> _Raw:
    raw = _Raw()
    link = ""
    for line in lines:
        word, _, rest = line.partition(" ")
        if link:
            raw.links[link], link = line, ""
        elif word == "link":
            link = rest
        elif word in ("file", "large", "unreadable"):
            size, mode, _, path = rest.split(" ", 3)
            file = ManagedFile(path, None, int(mode, 8), error=_TROUBLE.get(word, ""))
            if word == "file":
                raw.files.append((int(size), file))
            else:
                raw.others.append(file)
        elif word in ("odd", "absent"):
            raw.others.append(ManagedFile(rest, None, error=_TROUBLE.get(word, "")))
        elif word == "base64":
            raw.content += _base64(rest)
        elif word == "hex":
            raw.content += bytes.fromhex(rest)
        elif line.strip():
            raise ValueError("there is a line of no known kind")  # it may hold a file's content
    return raw


def _base64(text: str) -> bytes:
    try:
        return base64.b64decode(text.strip(), validate=True)
    except binascii.Error as error:
        raise ValueError(f"the content is not base64 ({error}): it was cut off") from error


def parse_cdi(lines: Sequence[str]) -> tuple[CdiSpec, ...]:
    """The CDI specs, each with the driver version that it was made for."""
    paths: list[str] = []
    drivers: dict[str, str] = {}
    for word, rest in split_records(lines):
        if word == "spec":
            paths.append(rest)
        else:
            path, _, library = f"{word} {rest}".strip().rpartition(":")
            drivers.setdefault(path, library_version(library.rstrip(".")) or "")
    return tuple(CdiSpec(path, drivers.get(path, "")) for path in paths)
