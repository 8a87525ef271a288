"""`pyinfra` and `gpufleet` without their start: a process that has their libraries forks per run.

The import of pyinfra, paramiko, kubernetes, pytest and gpufleet is most of the CPU of a short run.
The files of deploys, inventories, roles and checks are read in each run.
"""

from __future__ import annotations

import array
import gc
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryFile
from threading import Timer
from typing import IO

from gevent import monkey

HANG = 900  # seconds after which a program of a test is killed: one that hangs, on any machine
PYINFRA = (
    "pyinfra_cli.main",
    "pyinfra.operations.server",
    "kubernetes.client",
    "jinja2",
    "tomlkit",
    "gpufleet.run.reporting",
    "gpufleet.node.operations.node",
    "gpufleet.helm.operations.cluster",
)
GPUFLEET = (  # no plugin of pytest: it warns of those that were imported before it
    "gpufleet.cli.doctor",
    "gpufleet.cli.status",
    "gpufleet.cli.verify",
    "gpufleet.verify.cluster",
    "_pytest.junitxml",
    "_pytest.terminal",
    "kubernetes.client",
    "rich.table",
)
CATALOGS = (  # every run loads them unchanged
    "gpufleet.node.catalog.load_catalog",
    "gpufleet.helm.chart_choice.load_charts",
    "gpufleet.monitoring.alert_models.load_alerts",
    "gpufleet.exporter.counters.load_counters",
    "gpufleet.toolkit.config.docker.dockerd_options",
    "gpufleet.helm.strategy.helm_catalog",
)
LIBRARIES = {"pyinfra": PYINFRA, "gpufleet": GPUFLEET}
HEADER = 8  # bytes of a request's length


class Run:
    """A started run. Its process `pid` leads a new session."""

    def __init__(self, ends: socket.socket, pid: int) -> None:
        self._ends = ends
        self.pid = pid

    def wait(self) -> int:
        """The exit status as subprocess has it: negative for a signal."""
        status = int.from_bytes(_exactly(self._ends, HEADER), "big")
        self._ends.close()
        return os.waitstatus_to_exitcode(status)


def begin(
    words: Sequence[str | Path],
    folder: Path,
    variables: Mapping[str, str],
    output: int,
    errors: int | None = None,
) -> Run:
    """Start `words` in `folder`. The first word names pyinfra or gpufleet.

    `output` and `errors` are the descriptors of its output; without `errors`, both streams use
    `output`.
    """
    ours, theirs = socket.socketpair()
    request = json.dumps(
        {
            "words": [str(word) for word in words],
            "folder": str(folder),
            "variables": dict(variables),
        }
    )
    printed = [output, output if errors is None else errors]
    descriptors = array.array("i", [theirs.fileno(), *printed])
    server = _server(Path(words[0]).name)
    data = len(request.encode()).to_bytes(HEADER, "big") + request.encode()
    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, descriptors)]
    sent = server.sendmsg([data], rights)
    server.sendall(data[sent:])
    theirs.close()
    return Run(ours, int.from_bytes(_exactly(ours, HEADER), "big"))


def ended(
    words: Sequence[str | Path],
    folder: Path,
    variables: Mapping[str, str],
    seconds: float = HANG,
) -> tuple[int, str]:
    """Exit status and output of a run; one that takes longer than `seconds` is killed."""
    done = completed(words, folder, variables, seconds, apart=False)
    return done.returncode, done.stdout


def completed(
    words: Sequence[str | Path],
    folder: Path,
    variables: Mapping[str, str],
    seconds: float = HANG,
    *,
    apart: bool = True,
) -> subprocess.CompletedProcess[str]:
    """Like `ended`. `apart`: standard error is in `stderr`, not in `stdout`."""
    with TemporaryFile() as printed, TemporaryFile() as complaints:
        errors = complaints.fileno() if apart else None
        run = begin(words, folder, variables, printed.fileno(), errors)
        watchdog = Timer(seconds, os.killpg, (run.pid, signal.SIGKILL))
        watchdog.start()
        status = run.wait()
        watchdog.cancel()
        texts = [_read(file) for file in (printed, complaints)]
    return subprocess.CompletedProcess([str(word) for word in words], status, *texts)


def _read(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode(errors="replace")


@cache
def _server(command: str) -> socket.socket:
    """The connection to the process that forks for a command; it ends when this process does."""
    ours, theirs = socket.socketpair()
    words = [sys.executable, str(Path(__file__)), command, str(theirs.fileno())]
    subprocess.Popen(words, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL)
    theirs.close()
    return ours


def _exactly(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = connection.recv(size - len(data))
        if not more:
            raise EOFError("the process that starts commands has ended")
        data += more
    return data


def _serve(requests: socket.socket) -> None:
    """Fork for every request; returns in each child, ready to be the command."""
    fork, waitpid, close = monkey.get_original("os", ["fork", "waitpid", "close"])
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody asks how the middle ones ended
    while True:
        head, passed, _, _ = socket.recv_fds(requests, HEADER, 3)
        if not head:
            sys.exit()
        ends, *printed = passed
        head += _exactly(requests, HEADER - len(head))
        request = json.loads(_exactly(requests, int.from_bytes(head, "big")))
        if fork():  # the child waits, so this one continues
            for descriptor in passed:
                close(descriptor)
            continue
        requests.close()
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        pid = fork()
        if pid:
            for descriptor in printed:
                close(descriptor)
            os.write(ends, waitpid(pid, 0)[1].to_bytes(HEADER, "big"))
            os._exit(0)
        os.setsid()
        os.write(ends, os.getpid().to_bytes(HEADER, "big"))
        close(ends)
        os.chdir(request["folder"])
        os.environ.clear()
        os.environ.update(request["variables"])
        for descriptor, standard in zip(printed, (1, 2), strict=True):
            os.dup2(descriptor, standard)
            close(descriptor)
        sys.argv = request["words"]
        return


def _main() -> None:
    command = sys.argv[1]
    requests = socket.socket(fileno=int(sys.argv[2]))  # a blocking one: made before the patches
    sys.path[0] = str(Path(sys.executable).parent)
    for name in LIBRARIES[command]:
        import_module(name)
    for catalog in CATALOGS if command == "pyinfra" else ():
        module, _, function = catalog.rpartition(".")
        getattr(import_module(module), function)()
    gc.freeze()  # a collection in a child would copy every page
    _serve(requests)
    if command == "gpufleet":
        import_module("gpufleet.cli").main()
    import_module("gevent").reinit()
    import_module("pyinfra_cli.main").main()


if __name__ == "__main__":
    _main()
