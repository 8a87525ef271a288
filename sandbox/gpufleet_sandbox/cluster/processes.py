"""The processes of a cluster, which outlive the command that starts them."""

from __future__ import annotations

import itertools
import os
import random
import signal
import socket
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from gpufleet_sandbox.waiting import wait_until

END_SECONDS = 2.0  # before SIGKILL: an API server waits for an etcd that is gone
EPHEMERAL = Path("/proc/sys/net/ipv4/ip_local_port_range")
LOWEST_PORT = 20000


@dataclass(frozen=True, slots=True)
class Process:
    """A started process; `born` distinguishes it from a later process with the same ID.

    `born` is "" if it exited before it was read.
    """

    name: str
    pid: int
    born: str

    @property
    def alive(self) -> bool:
        return self.born != "" and birth(self.pid) == self.born


def start(name: str, words: Sequence[str | Path], log: Path, env: Mapping[str, str]) -> Process:
    """Start a program in its own session; its output goes to `log`."""
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
    """The start time of a process in the kernel's ticks, or "" if it has exited or is a zombie."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return ""
    return "" if fields[0] in ("Z", "X") else fields[19]


def end(processes: Sequence[Process]) -> int:
    """Stop the running ones, one after another. Returns their number.

    The order matters: an API server takes ten seconds to give up on an etcd that is gone.
    """
    living = [process for process in processes if process.alive]
    for process in living:
        for number in (signal.SIGTERM, signal.SIGKILL):
            if process.alive:
                os.kill(process.pid, number)
            if wait_until(_gone(process), END_SECONDS):
                break
    return len(living)


def _gone(process: Process) -> Callable[[], bool]:
    def gone() -> bool:
        _reap(process.pid)
        return not process.alive

    return gone


def _reap(pid: int) -> None:
    """Reap a process if it is a child of this one."""
    try:
        os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return


def free_ports(count: int, address: str = "127.0.0.1") -> list[int]:
    """Ports that no process listens on.

    They are below the kernel's range for outgoing connections, which could take a port between
    this check and the moment when its program listens.
    """
    highest = int(EPHEMERAL.read_text().split()[0])
    candidates = random.sample(range(LOWEST_PORT, highest), highest - LOWEST_PORT)
    free = (port for port in candidates if _is_free(address, port))
    return list(itertools.islice(free, count))


def _is_free(address: str, port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind((address, port))
        except OSError:
            return False
    return True
