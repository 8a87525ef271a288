"""The file that a run's report goes to: checked before the run, private, written atomically."""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from gpufleet.core.secrets import hide_secrets

REPORT, JUNIT = "a gpufleet report", "a JUnit file"


def is_junit(text: bytes) -> bool:
    """Whether a file is empty or results of tests as JUnit has them."""
    return (
        not text.strip() or re.match(rb"\s*(<\?xml[^>]*>\s*)?<testsuites?[\s>]", text) is not None
    )


def is_report(text: bytes) -> bool:
    """Whether a file is empty, a report of a run, or one of `gpufleet verify`."""
    if not text.strip():
        return True
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return False
    hosts = data.get("hosts") if isinstance(data, dict) else None
    if not isinstance(hosts, dict):
        return False
    checked = bool(hosts) and all(
        isinstance(host, dict) and "checks" in host for host in hosts.values()
    )
    return {"schema", "gpufleet"} <= data.keys() or (data.keys() == {"hosts"} and checked)


class ReportFile:
    """One report at `path`; a relative path counts from the working directory of the start.

    `ours`: whether the content of a file is that of an older report, which may go; `kind`: what
    that is.
    """

    def __init__(
        self, path: Path, ours: Callable[[bytes], bool] = is_report, kind: str = REPORT
    ) -> None:
        self.path = path.absolute()
        self.ours, self.kind = ours, kind

    def prepare(self) -> None:
        """Remove an old report and check that a new one can be written. Raises OSError."""
        self.check()
        self.path.unlink(missing_ok=True)

    def check(self) -> None:
        """Check that a report can be written, and leave an old one until then.

        Raises OSError, also for a file that is neither a report nor empty, which is not changed.
        """
        if self.path.is_dir():
            raise IsADirectoryError("is a directory")
        if not self.path.parent.is_dir():
            raise NotADirectoryError(f"folder {self.path.parent} does not exist")
        if self.path.exists() and not self.path.is_file():
            raise OSError("is not a regular file")
        if self.path.exists() and not self.ours(self.path.read_bytes()):
            raise FileExistsError(f"the file exists and is not {self.kind}")
        os.unlink(self._temporary(""))

    def write(self, text: str) -> None:
        """Put the report in its place, whole or not at all, mode 0600, without
        registered secrets. Raises OSError."""
        temporary = self._temporary(hide_secrets(text))
        try:
            os.replace(temporary, self.path)
        except OSError:
            os.unlink(temporary)
            raise

    def _temporary(self, text: str) -> str:
        """A file in the report's folder with `text`, readable by its owner only."""
        handle, name = tempfile.mkstemp(prefix=f".{self.path.name}.", dir=self.path.parent)
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text)
        except (OSError, ValueError):
            with suppress(FileNotFoundError):
                os.unlink(name)
            raise
        return name
