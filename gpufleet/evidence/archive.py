"""The archive of the evidence, which has a name only when it is complete."""

from __future__ import annotations

import hashlib
import io
import tarfile
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import IO

from gpufleet.core.names import count_noun
from gpufleet.core.private_file import write_private
from gpufleet.core.secrets import hide_secrets
from gpufleet.core.visible import each_line, one_line
from gpufleet.evidence.manifest import ArchivedFile, archive_path, evidence_manifest
from gpufleet.evidence.models import Evidence, EvidenceFile, MissingEvidence

MANIFEST = "MANIFEST.txt"
ESCAPED_CHARS = 1 << 20  # that are made visible at once, which takes 60 bytes for some
EXTENSIONS = (".gz", ".tgz", ".tar")


class EvidenceArchive:
    """A tar.gz archive. Secrets and control characters are replaced in all files.

    Until `finish`, it is a file without a name in the folder of `path`, so that no kill leaves a
    part of it. A write error is kept in `error`; later files are then ignored.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.error: OSError | None = None
        self.subjects: set[str] = set()  # folders with at least one file
        self.lost: list[str] = []  # folders that have nothing, or not all
        self._name = path.name
        for extension in EXTENSIONS:
            self._name = self._name.removesuffix(extension)
        self._files: list[ArchivedFile] = []
        self._missing: list[MissingEvidence] = []
        self._paths: set[str] = set()
        self._spool: IO[bytes] | None = None
        self._tar: tarfile.TarFile | None = None

    def add(self, subject: str, found: Iterable[Evidence]) -> None:
        """Store evidence below the folder `subject`, "" for the top of the archive."""
        for each in found:
            if isinstance(each, MissingEvidence):
                self.note_missing(f"{subject}/{each.name}", each.reason)
            else:
                self._store(subject, each)

    def note_missing(self, name: str, reason: str) -> None:
        """List evidence in the manifest that could not be read."""
        self._missing.append(MissingEvidence(name, hide_secrets(reason)))

    def note_lost(self, subject: str, reason: str) -> None:
        """List a host or cluster in the manifest whose evidence could not be read, or not all."""
        self.lost.append(subject)
        self.note_missing(subject, reason)

    @property
    def summary(self) -> str:
        """A line about the finished archive."""
        files = count_noun(len(self._files), "file")
        missing = f"; {len(self._missing)} not collected" if self._missing else ""
        return f"Wrote {one_line(str(self.path))}: {files}{missing}. {MANIFEST} lists them."

    def finish(self, head: str) -> None:
        """Add the manifest, which begins with `head`, and name the archive. Raises OSError."""
        text = evidence_manifest(head, self._files, self._missing)
        self._store("", EvidenceFile(MANIFEST, text, "gpufleet"))
        if self.error:
            raise self.error
        assert self._tar is not None
        assert self._spool is not None
        with self._spool:
            self._tar.close()
            self._spool.seek(0)
            write_private(self.path, self._spool.read())

    def _store(self, subject: str, file: EvidenceFile) -> None:
        """Write one file, unless an earlier one failed."""
        data = _visible(hide_secrets(file.text)).encode("utf-8", "replace")
        path = self._free_path(archive_path(subject, file.name))
        entry = tarfile.TarInfo(f"{archive_path(self._name)}/{path}")
        entry.size, entry.mode, entry.mtime = len(data), 0o600, int(time.time())
        try:
            if not self.error:
                self._opened().addfile(entry, io.BytesIO(data))
        except OSError as error:
            self.error = error
        about = hide_secrets(f"{file.source} ({file.note})" if file.note else file.source)
        digest = hashlib.sha256(data).hexdigest()
        self._files.append(ArchivedFile(path, len(data), digest, about))
        if subject:
            self.subjects.add(subject)

    def _opened(self) -> tarfile.TarFile:
        if self._tar is None:
            self._spool = tempfile.TemporaryFile(dir=self.path.parent)  # noqa: SIM115 until finish
            self._tar = tarfile.open(fileobj=self._spool, mode="w:gz")  # noqa: SIM115
        return self._tar

    def _free_path(self, path: str) -> str:
        """The path, with a number if another file has it: different names may become the same."""
        free, number = path, 1
        while free in self._paths:
            number += 1
            free = f"{path}~{number}"
        self._paths.add(free)
        return free


def _visible(text: str) -> str:
    """A text with its line breaks, and without other control characters."""
    starts = range(0, len(text), ESCAPED_CHARS)
    return "".join(each_line(text[start : start + ESCAPED_CHARS]) for start in starts)
