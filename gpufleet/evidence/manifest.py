"""The list of an archive's files, for people. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from gpufleet.core.visible import one_line
from gpufleet.evidence.models import MissingEvidence

MAX_PART_CHARS = 120  # of one part of a path in the archive
MAX_PATH_PARTS = 24  # of a path in the archive
_UNSAFE = re.compile(r"[^A-Za-z0-9._@+=,-]")
NOTICE = """\
gpufleet replaced the secrets that it knows with ***: those of the inventory, of login files and
kubeconfigs, and, in configuration files, objects and events of clusters, values of keys such as
password. It cannot recognize secrets that it never held: arguments of programs, other files and
logs may have some, and host names and addresses are in all of them. Read the files before you send
them to other people.
"""


@dataclass(frozen=True, slots=True)
class ArchivedFile:
    """One file of an archive."""

    path: str
    size: int
    sha256: str
    about: str  # its source, and a note, such as "cut to 100 bytes"


def archive_path(*names: str) -> str:
    """A path for an archive from names of any text: relative, without "..", in plain ASCII."""
    parts = [part for name in names for part in name.split("/") if part.strip(".")]
    return "/".join(_UNSAFE.sub("_", part)[:MAX_PART_CHARS] for part in parts[:MAX_PATH_PARTS])


def evidence_manifest(
    head: str, files: Sequence[ArchivedFile], missing: Iterable[MissingEvidence]
) -> str:
    """MANIFEST.txt: every file with its size, checksum and source, and the missing ones."""
    rows = [f"{each.sha256}  {each.size:>9}  {each.path}\n    {each.about}" for each in files]
    absent = [f"{each.name}: {each.reason}" for each in missing]
    parts = [
        f"{head}\n",
        NOTICE,
        "Files (SHA-256, size in bytes, path; below it the source)",
        *rows,
        "",
        "Not collected",
        *(absent or ["nothing is missing"]),
    ]
    return "".join(f"{one_line(line)}\n" for part in parts for line in part.split("\n"))
