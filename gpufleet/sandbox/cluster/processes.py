"""The programs of a cluster as processes that outlive the command which started them."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from gpufleet.sandbox.waiting import wait_until

END_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Process:
    """A process that was started; `born` tells it from a later one with the same number."""

    name: str
    pid: int
    born: str

    @property
    def alive(self) -> bool:
        return birth(self.pid) == self.born


def start(name: str, words: Sequence[str | Path], log: Path, env: dict[str, str]) -> Process:
    """Start a program in a session of its own; its output goes to `log`."""
    with open(log, "ab") as output:
        process = subprocess.Popen(
            [str(word) for word in words],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env={**os.environ, **env},
        )
    return Process(name, process.pid, birth(process.pid))


def birth(pid: int) -> str:
    """When a process began, in the kernel's ticks; "" when there is none, or only its remains."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return ""
    return "" if fields[0] in ("Z", "X") else fields[19]


def end(processes: Sequence[Process]) -> int:
    """Ask those that still live to end, then make them; how many there were."""
    living = [process for process in processes if process.alive]
    for number in (signal.SIGTERM, signal.SIGKILL):
        for process in living:
            if process.alive:
                os.kill(process.pid, number)
        if wait_until(_gone(living), END_SECONDS):
            break
    return len(living)


def _gone(processes: Sequence[Process]) -> Callable[[], bool]:
    def asked() -> bool:
        for process in processes:
            _reap(process.pid)
        return not any(process.alive for process in processes)

    return asked


def _reap(pid: int) -> None:
    """Take the remains of a process away where it is a child of this one."""
    try:
        os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return


def free_ports(count: int, address: str = "127.0.0.1") -> list[int]:
    """Ports that nobody listens on now."""
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind((address, 0))
    ports = [int(each.getsockname()[1]) for each in sockets]
    for each in sockets:
        each.close()
    return ports
