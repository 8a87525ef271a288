"""A process that has pyinfra loaded and forks for each step of a run: most of the time of a short
step is the start of Python and its libraries."""

from __future__ import annotations

import gc
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

from gpufleet.core.python import python_code, python_module
from gpufleet.upgrade.operations.process import Process

PYINFRA = python_module("pyinfra")  # the beginning of every command that it can become
LIBRARIES = (
    "pyinfra_cli.main",  # first: it makes gevent replace parts of the standard library
    "gpufleet.run.reporting",
    "gpufleet.roles.node",
    "gpufleet.upgrade.operations.steps",
)
HEADER = 8  # bytes of a length, a process's number, an exit status
ANSWER = 60.0  # seconds for its answer; it may still load its libraries
SIGNALS = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
LOST = -int(signal.SIGKILL)  # the exit status of a step whose end is not known


class Forked:
    """A step that is under way, as far as subprocess.Popen is needed for one."""

    def __init__(self, ends: socket.socket) -> None:
        """`ends`: gives the number of the process, and at its end the status. Raises EOFError where
        none begins, in the time that it allows."""
        self._ends = ends
        try:
            number = _exactly(ends, HEADER)
        except TimeoutError:
            ends.shutdown(socket.SHUT_RD)  # a step whose number nobody takes does not begin
            number = _exactly(ends, HEADER)  # it has begun right before
        ends.settimeout(None)
        self.pid = int.from_bytes(number, "big")
        self._process = Process(self.pid)

    def wait(self) -> int:
        """The exit status as subprocess has it: negative for a signal."""
        try:
            status = os.waitstatus_to_exitcode(int.from_bytes(_exactly(self._ends, HEADER), "big"))
        except EOFError:  # the process in between was killed; the step may be at work
            status = LOST
            self._process.wait()
        self._process.forget()
        self._ends.close()
        return status

    def terminate(self) -> None:
        """Send SIGTERM, unless the process has ended."""
        self._process.send(signal.SIGTERM)


class Standby:
    """The process that forks; used by several threads."""

    def __init__(self) -> None:
        """Start it."""
        self._guard = threading.Lock()
        self._asked: set[socket.socket] = set()  # for steps that have not begun
        self._requests, theirs = socket.socketpair()
        self._requests.settimeout(ANSWER)
        code = "from gpufleet.upgrade.operations.standby import main; "
        with theirs:
            self.process = subprocess.Popen(
                python_code(f"{code}main({theirs.fileno()})"),
                pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            )  # fmt: skip

    def begin(
        self, words: Sequence[str], cwd: str, environment: Mapping[str, str], output: Path
    ) -> Forked | None:
        """A step in the folder `cwd` that appends to the file `output`. None where it is to be
        started as any other command: it is not pyinfra's, or the process has ended or does not
        answer."""
        if list(words[: len(PYINFRA)]) != PYINFRA:
            return None
        step = {
            "words": list(words[len(PYINFRA) :]),
            "cwd": cwd,
            "environment": dict(environment),
            "output": str(output),
        }
        data = json.dumps(step).encode()
        ours, theirs = socket.socketpair()
        ours.settimeout(ANSWER)
        self._asked.add(ours)
        try:
            with theirs:
                self._ask(data, theirs)
            return Forked(ours)
        except (OSError, EOFError):
            ours.close()
            self._requests.close()  # further steps do not wait for it
            return None
        finally:
            self._asked.discard(ours)

    def _ask(self, data: bytes, theirs: socket.socket) -> None:
        """Send a request. Raises OSError."""
        with self._guard:
            head = len(data).to_bytes(HEADER, "big")
            socket.send_fds(self._requests, [head], [theirs.fileno()])
            self._requests.sendall(data)

    def end(self) -> None:
        """End the process; steps that are under way are not its business, and those that have not
        begun do not begin. It waits for nothing: a signal may come while another one is answered.
        """
        self._requests.close()
        for waiting in tuple(self._asked):
            with suppress(OSError):
                waiting.shutdown(socket.SHUT_RD)
        self.process.terminate()


def main(descriptor: int) -> None:
    """The process. It ends with the one that started it, or by SIGTERM."""
    requests = socket.socket(fileno=descriptor)  # a blocking one: made before gevent's patches
    for name in LIBRARIES:
        import_module(name)
    from gpufleet.node.catalog import load_catalog

    load_catalog()
    gc.freeze()  # a collection in a step would copy every page
    if _serve(requests):
        import_module("gevent").reinit()
        import_module("pyinfra_cli.main").main()


def _serve(requests: socket.socket) -> bool:
    """Fork for each step; True in the process of a step, False at the end.

    By the functions that gevent has replaced: its own leave to its loop, which does not run here,
    what is to be done at once.
    """
    fork, close, _, on_signal = _originals()
    on_signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody asks how those in between ended
    on_signal(signal.SIGINT, signal.SIG_IGN)  # of the terminal: for the steps
    while True:
        head, passed, _, _ = socket.recv_fds(requests, HEADER, 1)
        if not head:
            return False
        (ends,) = passed
        head += _exactly(requests, HEADER - len(head))
        step = json.loads(_exactly(requests, int.from_bytes(head, "big")))
        signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
        if not fork():
            requests.close()
            return _step(step, ends)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
        close(ends)


def _originals() -> tuple[Any, Any, Any, Any]:
    """fork, close, waitpid and signal of Python."""
    from gevent import monkey

    of_os = monkey.get_original("os", ["fork", "close", "waitpid"])
    return (*of_os, monkey.get_original("signal", "signal"))


def _step(step: Mapping[str, Any], ends: int) -> bool:
    """Fork once more, and wait for the step in between; True in the process of the step. It begins
    once the run knows its number: without that nobody could end it, or wait for its end."""
    fork, close, _, on_signal = _originals()
    on_signal(signal.SIGCHLD, signal.SIG_DFL)
    known, knows = os.pipe()
    if pid := fork():
        _between(pid, ends, knows)
    close(ends)
    close(knows)
    if not os.read(known, 1):
        os._exit(1)
    close(known)
    on_signal(signal.SIGINT, signal.default_int_handler)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
    os.chdir(step["cwd"])
    os.environ.clear()
    os.environ.update(step["environment"])
    output = os.open(step["output"], os.O_WRONLY | os.O_APPEND)
    for number in (1, 2):
        os.dup2(output, number)
    close(output)
    sys.argv = ["pyinfra", *step["words"]]
    return True


def _between(pid: int, ends: int, knows: int) -> NoReturn:
    """Wait for a step, and report how it ended. The signals of a group are for the step."""
    _, close, waitpid, _ = _originals()
    with suppress(OSError):  # the run was killed: the step does not begin
        os.write(ends, pid.to_bytes(HEADER, "big"))
        os.write(knows, b"1")
    close(knows)
    status = waitpid(pid, 0)[1]
    with suppress(OSError):
        os.write(ends, status.to_bytes(HEADER, "big"))
    os._exit(0)


def _exactly(connection: socket.socket, size: int) -> bytes:
    """So many bytes. Raises EOFError where the other end is closed before."""
    data = b""
    while len(data) < size:
        more = connection.recv(size - len(data))
        if not more:
            raise EOFError
        data += more
    return data
