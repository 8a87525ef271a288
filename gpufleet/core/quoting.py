"""Quotes output of servers and programs: a part in the message, the whole in a private log."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import datetime, timezone
from pathlib import Path

from gpufleet.core.names import count_noun
from gpufleet.core.paths import NoHome, user_folder
from gpufleet.core.private_file import write_private
from gpufleet.core.secrets import hide_secrets
from gpufleet.core.visible import one_line

MAX_QUOTE_CHARS = 300
MAX_QUOTED_LINE_CHARS = 1000  # in a line of an output that is printed whole
MAX_QUOTED_LINES = 40  # in such an output
MAX_LOGS = 200
_READ = 64 * 1024  # characters that are searched for secrets


def quote_field(text: str, most: int = MAX_QUOTE_CHARS) -> str:
    """The start of an untrusted text as one line, without secrets and control characters."""
    shown = one_line(hide_secrets(" ".join(text[:_READ].split())))
    return shown if len(shown) <= most else f"{shown[: most - 1].rstrip()}…"


def quote_last_line(text: str, most: int = MAX_QUOTE_CHARS) -> str:
    """The last non-empty line of an output, as `quote_field` returns it, or ""."""
    return quote_field(text.rstrip().rpartition("\n")[2], most)


def quote_lines(name: str, lines: Sequence[str]) -> list[str]:
    """The last lines of the output of `name`. If some are left out, the first line names the log
    with the whole output."""
    shown = [quote_line(line) for line in lines[-MAX_QUOTED_LINES:]]
    left_out = len(lines) - len(shown)
    if not left_out:
        return shown
    return [f"({count_noun(left_out, 'line')} left out; {keep_output(name, lines)})", *shown]


def quote_line(line: str) -> str:
    """One line with its blanks, shortened."""
    shown = one_line(hide_secrets(line[:_READ]))
    return (
        shown if len(shown) <= MAX_QUOTED_LINE_CHARS else f"{shown[: MAX_QUOTED_LINE_CHARS - 1]}…"
    )


def keep_output(name: str, lines: Iterable[str]) -> str:
    """Write an output without secrets to a log that only this user can read. Returns the end of a
    sentence: the path of the log, or why it was not written."""
    moment = f"{datetime.now(timezone.utc):%Y%m%dT%H%M%S.%f}"
    safe = re.sub(r"[^\w.-]", "_", name)[:80]
    try:
        path = output_folder() / f"{moment}-{os.getpid()}-{safe}.log"
        write_private(path, hide_secrets("\n".join(lines)) + "\n")
        _remove_old(path.parent)
    except (OSError, NoHome) as error:
        return f"the whole output cannot be kept: {error}"
    return f"the whole output: {path}"


def output_folder() -> Path:
    """`$XDG_STATE_HOME/gpufleet/output`. Raises NoHome."""
    return user_folder("XDG_STATE_HOME", ".local/state") / "gpufleet/output"


def _remove_old(folder: Path) -> None:
    for path in sorted(folder.glob("*.log"))[:-MAX_LOGS]:
        with suppress(FileNotFoundError):  # another run removed it
            path.unlink()
