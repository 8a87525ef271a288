"""Measure `gpufleet upgrade` on one idle sandbox host: its time without packages and reboots."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.fleet import Fleet
from benchmarks.ours import GPUFLEET, Programs, by_operation
from benchmarks.stats import Summary
from benchmarks.timing import RunFailed, timed

OLD, NEW = "580.159.03", "580.178.04"  # in the sandbox's mirror
RUNS = 3  # to and fro by turns
LOOK = 0.02  # seconds between two looks at the output of the steps
FOREIGN = (
    "Resolve, try and download the packages",
    "Fetch the installed packages for a roll-back",
    "Resolve and download the driver packages",
    "Install the driver packages",
    "Rebuild the initramfs with the blacklist",
    "Reboot if required",
)  # operations of a package manager, and reboots

STAMP = re.compile(r"^\S+ \S+ ")  # of a line: its time

Lines = Sequence[tuple[float, str]]


@dataclass(frozen=True, slots=True)
class Own:
    """`whole`: a run over one host, from its first event to its last; `ours`: less the operations
    of FOREIGN; both in seconds. `operations`: of all steps of the last run."""

    whole: Summary
    ours: Summary
    operations: Sequence[tuple[str, float]]


@dataclass(slots=True)
class StepsWatch:
    """The lines of the log of a run, each with the moment at which it came."""

    folder: Path  # of the logs
    seen: dict[Path, list[tuple[float, str]]] = field(default_factory=dict)
    _over: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def __enter__(self) -> StepsWatch:
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._over.set()
        assert self._thread
        self._thread.join()

    def _watch(self) -> None:
        while not self._over.wait(LOOK):
            self.look(time.monotonic())

    def look(self, now: float) -> None:
        """Read the lines that were added since the last call."""
        for log in sorted(self.folder.glob("*.log")):
            lines = self.seen.setdefault(log, [(now, "")])
            text = log.read_text("utf-8", "replace")
            whole = text[: text.rfind("\n") + 1].splitlines()
            lines += [(now, STAMP.sub("", line)) for line in whole[len(lines) - 1 :]]


def operations_of(steps: Sequence[Lines]) -> list[tuple[str, float]]:
    """The operations of steps, with their seconds; those of one name added up."""
    found: dict[str, float] = {}
    for lines in steps:
        first = lines[0][0]
        for name, seconds in by_operation([(moment - first, line) for moment, line in lines]):
            found[name] = found.get(name, 0.0) + seconds
    return list(found.items())


def foreign(operations: Sequence[tuple[str, float]]) -> float:
    """Seconds of a package manager and of reboots."""
    return sum(seconds for name, seconds in operations if name.endswith(FOREIGN))


def measure(name: str, work: Path, progress: Callable[[str], None]) -> Own:
    """The driver of one idle host goes forth and back."""
    fleet = Fleet(name, work, progress)
    whole, ours = [], []
    operations: list[tuple[str, float]] = []
    try:
        fleet.grow(1)
        Programs(fleet.env, work, ["--data", f"driver_version={json.dumps(OLD)}"]).provision()
        for number in range(RUNS):
            state = work / f"upgrade-{time.time_ns()}"
            seconds, operations = _run(fleet, state, OLD if number % 2 else NEW)
            whole.append(seconds)
            ours.append(whole[-1] - foreign(operations))
            progress(
                f"upgrade of a host, round {number + 1} of {RUNS}: {whole[-1]:.1f} s, "
                f"our own part {ours[-1]:.1f} s"
            )
        return Own(Summary.of(whole), Summary.of(ours), operations)
    finally:
        fleet.down()


def _run(fleet: Fleet, state: Path, version: str) -> tuple[float, list[tuple[str, float]]]:
    """One run: the seconds from the first line of its log to the last, and its operations."""
    env = {**fleet.env, "XDG_STATE_HOME": str(state), "PYTHONUNBUFFERED": "1"}
    words: list[str | Path] = [GPUFLEET, "upgrade", "start", "inventories/sandbox.py"]
    with StepsWatch(state / "gpufleet/upgrades") as watch:
        timed(
            [*words, "--to", version, "--allow-downgrade", "--yes"],
            log=fleet.work / "upgrade.log",
            env=env,
        )
    watch.look(time.monotonic())
    ((log, lines),) = watch.seen.items()
    if not any(line.endswith(": done, in service") for _, line in lines):
        raise RunFailed(f"{log}: no host was changed")
    return lines[-1][0] - lines[0][0], operations_of([lines])
