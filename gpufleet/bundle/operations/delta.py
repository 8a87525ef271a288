"""Writes the difference of two bundles as an archive."""

from __future__ import annotations

import hashlib
import io
import os
import tarfile
from contextlib import suppress
from pathlib import Path

from gpufleet.bundle import findings
from gpufleet.bundle.compare import BundleDelta
from gpufleet.bundle.models import MANIFEST
from gpufleet.core.stopped import Stopped


def write_delta(folder: Path, delta: BundleDelta, archive: Path) -> None:
    """Write what a delta adds, and the new manifest, as a tar archive. Each file is checked while
    it is written. Raises Stopped."""
    temporary = archive.with_name(f".{archive.name}.part")
    try:
        with tarfile.open(temporary, "w") as output:
            for file in delta.added:
                data = (folder / file.path).read_bytes()
                digest = hashlib.sha256(data).hexdigest()
                if digest != file.sha256:
                    raise Stopped(
                        findings.FILE_NOT_KEPT(path=file.path, why="it differs from the manifest")
                    )
                _add(output, file.path, data)
            _add(output, MANIFEST, (folder / MANIFEST).read_bytes())
        os.replace(temporary, archive)
    except OSError as error:
        why = error.strerror or str(error)
        raise Stopped(findings.FILE_NOT_KEPT(path=error.filename or archive, why=why)) from error
    finally:
        with suppress(OSError):
            temporary.unlink()


def _add(output: tarfile.TarFile, path: str, data: bytes) -> None:
    entry = tarfile.TarInfo(path)
    entry.size, entry.mode = len(data), 0o644
    output.addfile(entry, io.BytesIO(data))
