"""Turns the state of a run's hosts into lines that show its progress. Pure.

Names and steps come from inventories and deploys: each becomes one visible line.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from rich.cells import cell_len, set_cell_size

from gpufleet.core.names import count_noun, fold_names, name_hosts
from gpufleet.core.visible import one_line

Stage = Literal["connecting", "reading", "running"]
LONG_STEP_SECONDS = 5.0  # seconds until a silent host is named, and until a step's log is read
NAME_SHARE = 4  # a host's name takes at most 1/NAME of the width


@dataclass(frozen=True, slots=True)
class Active:
    """A host that executes a step. `step`: `Role | Sentence`, as pyinfra names it; `logged`: its
    last line of the log, without secrets."""

    name: str
    step: str
    seconds: float
    logged: str = ""


@dataclass(frozen=True, slots=True)
class RunProgress:
    """The state of a run at one moment. Each host is counted once."""

    stage: Stage
    seconds: float
    hosts: int
    active: tuple[Active, ...] = ()
    silent: tuple[str, ...] = ()  # while connecting and reading: hosts without an answer
    waiting: int = 0
    unchanged: int = 0
    done: int = 0
    failed: int = 0
    blocked: int = 0  # reached, but stopped before any change


def longest_steps(progress: RunProgress) -> list[Active]:
    """The active hosts, the one with the longest-running step first."""
    return sorted(progress.active, key=lambda host: -host.seconds)


def terminal_lines(progress: RunProgress, width: int, height: int) -> list[str]:
    """The lines for a terminal of that size: the run, then each active host, the longest first."""
    shown = longest_steps(progress)
    room = max(height - 2, 1)  # one line is left for the cursor
    hidden = shown[room - 1 :] if len(shown) > room else []
    shown = shown[: len(shown) - len(hidden)]
    names = [one_line(host.name) for host in shown]
    column = min(max(map(cell_len, names), default=0), width // NAME_SHARE)
    lines = [_head(progress), *_late(progress)]
    lines += [_row(name, column, host, width) for name, host in zip(names, shown, strict=True)]
    if hidden:
        lines.append(f"  … and {count_noun(len(hidden), 'more host')} at work")
    return [fit_width(line, width) for line in lines]


def heartbeat_line(progress: RunProgress) -> str:
    """One line for a log: the run, and the host with the longest-running step."""
    line = _head(progress)
    if progress.active:
        slowest = longest_steps(progress)[0]
        line += f"; {one_line(slowest.name)} {format_elapsed(slowest.seconds)}: {_doing(slowest)}"
    elif late := _late(progress):
        line += f"; {late[0].strip()}"
    return line


def step_line(step: str, changed: Sequence[str], failed: Sequence[str], seconds: float) -> str:
    """One line for a finished step, or "" if it changed nothing and did not fail."""
    parts = [f"done on {name_hosts(changed)}"] if changed else []
    parts += [f"failed on {name_hosts(failed)}"] if failed else []
    return f"{step_title(step)}: {', '.join(parts)}, {format_elapsed(seconds)}" if parts else ""


def fit_width(text: str, width: int) -> str:
    """The text, cut to that number of columns."""
    if cell_len(text) <= width:
        return text
    return set_cell_size(text, max(width - 1, 0)).rstrip() + "…"


def _head(progress: RunProgress) -> str:
    """A summary of the whole run: `Running on 40 hosts, 65 s: 2 at work, 38 with no changes`."""
    if progress.stage != "running":
        answered = progress.hosts - len(progress.silent)
        word = "Connecting to" if progress.stage == "connecting" else "Reading"
        done = f": {answered} done" if answered else ""
        return (
            f"{word} {count_noun(progress.hosts, 'host')}, {format_elapsed(progress.seconds)}{done}"
        )
    counts = (
        (len(progress.active), "at work"),
        (progress.failed, "failed"),
        (progress.blocked, "blocked"),
        (progress.waiting, "waiting"),
        (progress.done, "done"),
        (progress.unchanged, "with no changes"),
    )
    parts = [f"{number} {word}" for number, word in counts if number]
    hosts = count_noun(progress.hosts, "host")
    return (
        f"Running on {hosts}, {format_elapsed(progress.seconds)}: {', '.join(parts) or 'none left'}"
    )


def _late(progress: RunProgress) -> list[str]:
    """One line with the hosts that have not answered, after `LONG` seconds."""
    if not progress.silent or progress.seconds < LONG_STEP_SECONDS:
        return []
    short = fold_names(progress.silent)
    more = len(short) - NAME_SHARE
    return [f"  waiting for {', '.join(short[:NAME_SHARE])}{', …' if more > 0 else ''}"]


def _row(name: str, column: int, host: Active, width: int) -> str:
    head = (
        f"  {set_cell_size(fit_width(name, column), column)}  {format_elapsed(host.seconds):>9}  "
    )
    return head + fit_width(_doing(host), width - cell_len(head))


def _doing(host: Active) -> str:
    return (
        f"{step_title(host.step)}: {one_line(host.logged)}"
        if host.logged
        else step_title(host.step)
    )


def step_title(name: str) -> str:
    """`Driver: Install the packages` for `NVIDIA driver | Install the packages`."""
    return one_line(name).replace(" | ", ": ")


def format_elapsed(seconds: float) -> str:
    whole = int(seconds)
    if whole < 100:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"
