"""Workers of this machine: each is a process that runs pyinfra on a part of the hosts."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Protocol

from gpufleet import __version__
from gpufleet.cli.deploy import DRY, arguments, deploy_file
from gpufleet.core.inventory import exactly
from gpufleet.core.python import python_code
from gpufleet.core.redact import redact
from gpufleet.core.visible import each_line
from gpufleet.run.shards import Outcome, Shard

LOOK = 0.5  # seconds between two looks at what has ended
TAIL = 4096  # characters of what a worker printed
WINDOW = 65_536  # bytes that are read for them
INTERRUPTED = "the run was interrupted"
Children = set["subprocess.Popen[bytes]"]


@dataclass(frozen=True, slots=True)
class Order:
    """What a worker is to run: deploys by name, in a folder that it has too. `log`: the file for
    its output, "" for a temporary one; `stop`: an event of the scheduler that ends it."""

    shard: Shard
    inventory: str
    deploys: tuple[str, ...]
    options: tuple[str, ...] = field(repr=False)  # may hold secrets
    folder: str
    log: str = ""
    stop: str = ""
    version: str = __version__

    @property
    def words(self) -> list[str]:
        """pyinfra's command, for the place where it runs: without options, which others can read
        in the arguments of a process."""
        folder = Path(self.folder)
        files = [deploy_file(name, folder) for name in self.deploys]
        hosts = [exactly(name) for name in self.shard.hosts]
        mine = arguments(self.inventory, files, hosts, (), yes=True, folder=folder)
        return [*python_code("from gpufleet.cli.part import main; main()"), *mine]

    @property
    def dry(self) -> bool:
        """Whether it changes nothing."""
        return self.deploys == ("preflight",) or DRY in self.options


def run_order(order: Order, stopping: Callable[[], bool], children: Children) -> Outcome:
    """Run pyinfra on a shard until it ends, in order where it is to stop. `children`: has the
    process while it runs."""
    if order.version != __version__:
        return Outcome(problem=f"it has gpufleet {__version__}, this run is of {order.version}")
    if not Path(order.folder).is_dir():
        return Outcome(problem=f"it has no folder {order.folder}, where the run was started")
    if stopping():
        return Outcome(problem=INTERRUPTED)
    logs = os.path.dirname(order.log) or None
    with tempfile.TemporaryDirectory(prefix="gpufleet-", dir=logs) as folder:
        report = Path(folder, "report.json")
        log = Path(order.log or Path(folder, "output"))
        environment = {**os.environ, "GPUFLEET_REPORT": str(report)}
        environment.pop("GPUFLEET_JUNIT", None)  # of the whole
        with open(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as output:
            child = subprocess.Popen(
                order.words, cwd=order.folder, env=environment, stdin=subprocess.PIPE,
                stdout=output, stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip
        children.add(child)
        try:
            stopped = _wait(child, order.options, stopping)
        finally:
            children.discard(child)
        text = report.read_text("utf-8", "replace") if report.is_file() else ""
        problem = INTERRUPTED if stopped and not text else ""
        return Outcome(text, child.returncode, tail_of(log), problem)


def _wait(
    child: subprocess.Popen[bytes], options: Sequence[str], stopping: Callable[[], bool]
) -> bool:
    """Wait until a worker has ended; whether it was stopped. It reads its options, and ends when
    its standard input is closed, which the end of this process does too: gpufleet.cli.part."""
    assert child.stdin
    try:
        with suppress(BrokenPipeError):
            child.stdin.write(json.dumps(options).encode() + b"\n")
            child.stdin.flush()
        while child.poll() is None and not stopping():
            with suppress(subprocess.TimeoutExpired):
                child.wait(LOOK)
        return child.returncode is None
    finally:
        with suppress(BrokenPipeError):
            child.stdin.close()
        child.wait()


def tail_of(log: Path) -> str:
    """The end of a log: visible lines without secrets. It is read again where it has changed."""
    try:
        known = log.stat()
    except OSError:
        return ""
    return _tail(log, known.st_size, known.st_mtime_ns)


@lru_cache(maxsize=256)
def _tail(log: Path, size: int, changed: int) -> str:
    """Secrets are masked in more than is kept. A line whose beginning was not read is dropped:
    what is left of it may be a part of one."""
    start = max(size - WINDOW, 0)
    try:
        with log.open("rb") as file:
            file.seek(start)
            text = redact(file.read(WINDOW).decode("utf-8", "replace"))
    except OSError:
        return ""
    whole = text.partition("\n")[2] if start else text
    return each_line(whole.strip()[-TAIL:])


class Workers(Protocol):
    """Where shards run. `count`: how many at a time."""

    @property
    def count(self) -> int: ...
    def submit(self, order: Order) -> Future[Outcome]: ...
    def stop(self) -> None:
        """End what runs, in order; does not wait for that."""

    def kill(self) -> None:
        """End the processes of this machine at once."""

    def close(self) -> None:
        """End what still runs, in order."""


class Local:
    """Processes of this machine."""

    def __init__(self, count: int) -> None:
        self.count = count
        self._pool = ThreadPoolExecutor(count)
        self._stop = threading.Event()
        self._children: Children = set()

    def submit(self, order: Order) -> Future[Outcome]:
        return self._pool.submit(run_order, order, self._stop.is_set, self._children)

    def stop(self) -> None:
        self._stop.set()

    def kill(self) -> None:
        for child in self._children.copy():
            with suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)

    def close(self) -> None:
        self.stop()
        self._pool.shutdown()
