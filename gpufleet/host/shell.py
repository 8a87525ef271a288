"""Scripts that run on hosts: POSIX sh from ROOM/scripts/, with values only as quoted arguments."""

from __future__ import annotations

import base64
import hashlib
from functools import lru_cache
from pathlib import Path

from pyinfra.api import QuoteString, StringCommand

from gpufleet.core.findings import Finding
from gpufleet.core.visible import one_line

ROOMS = Path(__file__).parents[1]
LINE = 16_384  # characters of base64, a multiple of 4
UNIT_SCRIPTS = (  # scripts that enable or change units, or run packages' scripts that do
    "containerd/start", "driver/services", "exporter/exporter_start", "exporter/exporter_stop",
    "gpu/apply_layout", "gpu/drop_layout",
    "kubernetes/kubeadm", "kubernetes/reset", "node/purge", "node/remove_files",
    "packages/apt_transaction", "packages/finish", "packages/rpm_install",
    "packages/rpm_transaction", "toolkit/cdi_refresh",
)  # fmt: skip
SHARED_FUNCTIONS = {  # file of functions -> the scripts that use them
    "host/gpu_work": (
        "toolkit/activate", "driver/end_work", "host/reboot", "driver/unload", *UNIT_SCRIPTS,
    ),
    "host/units": UNIT_SCRIPTS,
    "kubernetes/api_access": (
        "kubernetes/apply", "kubernetes/delete_node", "kubernetes/kubeadm", "kubernetes/leave",
        "kubernetes/ready", "kubernetes/reset", "kubernetes/token", "kubernetes/unanswered",
        "kubernetes/withdraw",
    ),
    "kubernetes/identity": ("kubernetes/kubeadm", "kubernetes/reset", "kubernetes/token"),
    "upgrade/gpu_units": (
        "upgrade/keep", "upgrade/note", "upgrade/restore", "upgrade/take", "upgrade/validate",
    ),
    "upgrade/kept": ("upgrade/restore", "upgrade/take"),
    "packages/sources": (
        "packages/available", "packages/refresh_apt", "packages/try_repository",
    ),
    "packages/version_locks": ("packages/hold", "packages/release"),
    "packages/package_notes": (
        "packages/apt_transaction", "packages/packages_added", "packages/packages_before",
        "packages/rpm_install", "packages/rpm_transaction",
    ),
}  # fmt: skip


@lru_cache
def _source(name: str) -> str:
    shared = [file for file, users in SHARED_FUNCTIONS.items() if name in users]
    return "".join(script_file(part).read_text() for part in ("host/prelude", *shared, name))


def script_file(name: str) -> Path:
    """The file of a script by ROOM/NAME."""
    room, _, stem = name.partition("/")
    return ROOMS / room / "scripts" / f"{stem}.sh"


def script_command(name: str, *arguments: str) -> StringCommand:
    """The command that runs a script, by ROOM/NAME, with `arguments` on a host."""
    bits = [QuoteString(argument) for argument in arguments]
    program = f"gpufleet-{name.rpartition('/')[2]}"
    return StringCommand("sh", "-c", QuoteString(_source(name)), program, *bits)


def upload_command(content: bytes, path: str) -> StringCommand:
    """The command that writes bytes to `path` on a host, readable only by root from the start.

    The bytes go through standard input. pyinfra itself leaves them readable in /tmp until they are
    copied, and every process can read a command's arguments.
    """
    digest = hashlib.sha256(content).hexdigest()
    return StringCommand(script_command("host/receive", path, digest), _stdin=as_lines(content))


def as_lines(content: bytes) -> list[str]:
    """Bytes as the lines of standard input that host/receive decodes."""
    text = base64.b64encode(content).decode()
    return [text[start : start + LINE] for start in range(0, len(text), LINE)] or [""]


def quote_command(*arguments: str) -> StringCommand:
    """A command of plain arguments, each quoted."""
    return StringCommand(*(QuoteString(argument) for argument in arguments))


def explain_finding(host: str, finding: Finding) -> str:
    """A finding as text for a terminal: the host, the message and the remedy."""
    return f"{finding.code} {one_line(host)}: {finding.message}\n  {finding.remedy}"


def stop_command(host: str, finding: Finding) -> StringCommand:
    """A command that fails with the finding as its error text, which stops only this host."""
    fail = QuoteString('printf "%s\\n" "$1" >&2; exit 1')
    text = QuoteString(explain_finding(host, finding))
    return StringCommand("sh", "-c", fail, "gpufleet", text)
