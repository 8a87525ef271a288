"""Result files: checked before the work, private, and written atomically."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from gpufleet.core.findings import Finding
from gpufleet.core.private_file import write_private
from gpufleet.core.secrets import hide_secrets
from gpufleet.core.stopped import Stopped
from gpufleet.run import findings
from gpufleet.run.plan_contract import Hosts


@dataclass(frozen=True, slots=True)
class FileKind:
    """An older file may be replaced if one of the `words` is in its first bytes."""

    name: str
    words: tuple[bytes, ...]


REPORT_FILE = FileKind("a gpufleet report", (b'"gpufleet"', b'"checks"'))  # the latter for `verify`
JUNIT = FileKind("a JUnit file", (b"<testsuite",))
REPORT_OPTIONS = (  # variable and option that name the file of a report, kind of an older one
    ("GPUFLEET_REPORT", "--json", REPORT_FILE),
    ("GPUFLEET_JUNIT", "--junit", JUNIT),
)
NEW_FILE = FileKind("empty", ())  # no older file is replaced
HEAD_BYTES = 4096  # first bytes, which are searched for the words


def prepare_file(path: str, option: str, kind: FileKind, *, keep: bool = False) -> Path:
    """The absolute path of a writable file. An older file is removed unless `keep`.

    Raises Stopped (GF001), also for an existing file that is neither of that kind nor empty; that
    file is not changed.
    """
    file = Path(path).absolute()
    try:
        if file.is_dir():
            raise IsADirectoryError("is a directory")
        if not file.parent.is_dir():
            raise NotADirectoryError(f"folder {file.parent} does not exist")
        if file.exists() and not file.is_file():
            raise OSError("is not a regular file")
        start = file.read_bytes()[:HEAD_BYTES] if file.exists() else b""
        if start.strip() and not any(word in start for word in kind.words):
            raise FileExistsError(f"the file exists and is not {kind.name}")
        with tempfile.TemporaryFile(dir=file.parent):
            pass
        if not keep:
            file.unlink(missing_ok=True)
    except OSError as error:
        found = findings.REPORT_PATH(option=option, path=path, why=error_reason(error))
        raise Stopped(found) from error
    return file


def write_file(path: Path, text: Callable[[], str]) -> bool:
    """Write a file atomically, with mode 0600. On failure, print GF002 and return False."""
    try:
        write_private(path, hide_secrets(text()))
    except (OSError, ValueError) as error:
        print_lost(path, error)
        return False
    return True


@contextmanager
def report_of_process() -> Iterator[tuple[Path, dict[str, str]]]:
    """A temporary file for the report of a process, and the environment of that process."""
    with tempfile.TemporaryDirectory(prefix="gpufleet-") as folder:
        report = Path(folder, "report.json")
        yield report, {**os.environ, "GPUFLEET_REPORT": str(report), "GPUFLEET_JUNIT": ""}


def hosts_of_report(report: Path) -> Hosts | None:
    """The hosts and clusters of a report (run/report.schema.json), or None without a report."""
    try:
        hosts: Hosts = json.loads(report.read_text("utf-8"))["hosts"]
    except (OSError, ValueError, LookupError):
        return None
    return hosts


def print_lost(path: object, error: OSError | ValueError) -> None:
    """Print that results could not be written to this place (GF002)."""
    print_run_finding(findings.REPORT_LOST(path=path, why=error_reason(error)))


def print_run_finding(finding: Finding) -> None:
    """Print a finding about the run itself."""
    print_error(finding.paragraph)


def print_error(text: str) -> None:
    """Print to standard error, but ignore a closed one, so that a run can always end."""
    with suppress(OSError):
        print(text, file=sys.stderr, flush=True)


def error_reason(error: OSError | ValueError) -> str:
    return getattr(error, "strerror", None) or str(error)
