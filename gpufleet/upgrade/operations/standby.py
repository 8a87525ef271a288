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
from typing import Any

from gpufleet.core.python import python_code, python_module

PYINFRA = python_module("pyinfra")  # the beginning of every command that it can become
LIBRARIES = (
    "pyinfra_cli.main",  # first: it makes gevent replace parts of the standard library
    "gpufleet.run.begin",
    "gpufleet.roles.node",
    "gpufleet.upgrade.operations.steps",
)
HEADER = 8  # bytes of a length, a process's number, an exit status
LOST = -int(signal.SIGKILL)  # the exit status of a step whose end is not known


class Forked:
    """A step that is under way, as far as subprocess.Popen is needed for one."""

    def __init__(self, ends: socket.socket) -> None:
        """`ends`: gives the number of the process, and at its end the status."""
        self._ends = ends
        self.pid = int.from_bytes(_exactly(ends, HEADER), "big")
        self._guard = threading.Lock()
        self._over = False

    def wait(self) -> int:
        """The exit status as subprocess has it: negative for a signal."""
        try:
            status = os.waitstatus_to_exitcode(int.from_bytes(_exactly(self._ends, HEADER), "big"))
        except EOFError:
            status = LOST
        with self._guard:
            self._over = True
        self._ends.close()
        return status

    def terminate(self) -> None:
        """Send SIGTERM, unless the process has ended."""
        with self._guard, suppress(ProcessLookupError):
            if not self._over:
                os.kill(self.pid, signal.SIGTERM)


class Standby:
    """The process that forks; used by several threads."""

    def __init__(self, cwd: str) -> None:
        """Start it. `cwd`: the working directory of the steps."""
        self._guard = threading.Lock()
        self._requests, theirs = socket.socketpair()
        code = "from gpufleet.upgrade.operations.standby import main; "
        with theirs:
            self.process = subprocess.Popen(
                python_code(f"{code}main({theirs.fileno()})"), cwd=cwd,
                pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            )  # fmt: skip

    def begin(
        self, words: Sequence[str], environment: Mapping[str, str], output: Path
    ) -> Forked | None:
        """A step that appends to the file `output`. None where it is to be started as any other
        command: it is not pyinfra's, or the process has ended."""
        if list(words[: len(PYINFRA)]) != PYINFRA:
            return None
        own = list(words[len(PYINFRA) :])
        step = {"words": own, "environment": dict(environment), "output": str(output)}
        data = json.dumps(step).encode()
        ours, theirs = socket.socketpair()
        try:
            with self._guard, theirs:
                head = len(data).to_bytes(HEADER, "big")
                socket.send_fds(self._requests, [head], [theirs.fileno()])
                self._requests.sendall(data)
            return Forked(ours)
        except (OSError, EOFError):
            ours.close()
            return None

    def end(self) -> None:
        """End the process; steps that are under way are not its business."""
        with self._guard:
            self._requests.close()
            self.process.terminate()
            self.process.wait()


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
    """Fork for each step; True in the process of a step, False at the end."""
    from gevent import monkey

    (fork,) = monkey.get_original("os", ["fork"])
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody asks how those in between ended
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # of the terminal: for the steps
    while True:
        head, passed, _, _ = socket.recv_fds(requests, HEADER, 1)
        if not head:
            return False
        (ends,) = passed
        head += _exactly(requests, HEADER - len(head))
        step = json.loads(_exactly(requests, int.from_bytes(head, "big")))
        if not fork():
            requests.close()
            return _step(step, ends)
        os.close(ends)


def _step(step: Mapping[str, Any], ends: int) -> bool:
    """Fork once more, and wait for the step in between; True in the process of the step."""
    from gevent import monkey

    fork, waitpid = monkey.get_original("os", ["fork", "waitpid"])
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    if pid := fork():
        with suppress(OSError):  # the run was killed
            os.write(ends, pid.to_bytes(HEADER, "big"))
        status = waitpid(pid, 0)[1]
        with suppress(OSError):
            os.write(ends, status.to_bytes(HEADER, "big"))
        os._exit(0)
    os.close(ends)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.clear()
    os.environ.update(step["environment"])
    output = os.open(step["output"], os.O_WRONLY | os.O_APPEND)
    for number in (1, 2):
        os.dup2(output, number)
    os.close(output)
    sys.argv = ["pyinfra", *step["words"]]
    return True


def _exactly(connection: socket.socket, size: int) -> bytes:
    """So many bytes. Raises EOFError where the other end is closed before."""
    data = b""
    while len(data) < size:
        more = connection.recv(size - len(data))
        if not more:
            raise EOFError
        data += more
    return data
