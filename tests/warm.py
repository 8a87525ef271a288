"""The `pyinfra` command without its start: a process that has its libraries forks for each run.

The import of pyinfra, paramiko, kubernetes and gpufleet is most of the CPU of a short run. The
files of deploys, inventories and roles are read in each run.
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

import gevent
from gevent import monkey

LIBRARIES = (
    "pyinfra_cli.main",
    "pyinfra.operations.server",
    "kubernetes.client",
    "jinja2",
    "tomlkit",
    "gpufleet.run.begin",
    "gpufleet.node.operations.node",
    "gpufleet.helm.operations.cluster",
)
CATALOGS = (  # what every run reads as it is shipped
    "gpufleet.node.catalog.load_catalog",
    "gpufleet.helm.chart_choice.load_charts",
    "gpufleet.monitoring.alert_models.load_alerts",
    "gpufleet.exporter.counters.load_counters",
    "gpufleet.toolkit.dockerd.dockerd_options",
    "gpufleet.helm.limits.helm_catalog",
)
HEADER = 8  # bytes of a request's length


class Run:
    """A run that has begun; `pid` leads a session of its own."""

    def __init__(self, ends: socket.socket, pid: int) -> None:
        self._ends = ends
        self.pid = pid

    def wait(self) -> int:
        """The exit status as subprocess has it: negative for a signal."""
        status = int.from_bytes(_exactly(self._ends, HEADER), "big")
        self._ends.close()
        return os.waitstatus_to_exitcode(status)


def begin(words: Sequence[str], folder: Path, variables: Mapping[str, str], output: int) -> Run:
    """`pyinfra WORDS` in `folder`; `output` is the descriptor for what it prints."""
    ours, theirs = socket.socketpair()
    request = json.dumps(
        {"words": list(words), "folder": str(folder), "variables": dict(variables)}
    )
    descriptors = array.array("i", [theirs.fileno(), output])
    data = len(request.encode()).to_bytes(HEADER, "big") + request.encode()
    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, descriptors)]
    sent = _server().sendmsg([data], rights)
    _server().sendall(data[sent:])
    theirs.close()
    return Run(ours, int.from_bytes(_exactly(ours, HEADER), "big"))


def ended(
    words: Sequence[str], folder: Path, variables: Mapping[str, str], seconds: float
) -> tuple[int, str]:
    """Exit status and output of a run; one that takes longer than `seconds` is killed."""
    with TemporaryFile() as printed:
        run = begin(words, folder, variables, printed.fileno())
        watchdog = Timer(seconds, os.killpg, (run.pid, signal.SIGKILL))
        watchdog.start()
        status = run.wait()
        watchdog.cancel()
        printed.seek(0)
        return status, printed.read().decode(errors="replace")


@cache
def _server() -> socket.socket:
    """The connection to the process that forks; it ends when this process does."""
    ours, theirs = socket.socketpair()
    words = [sys.executable, str(Path(__file__)), str(theirs.fileno())]
    subprocess.Popen(words, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL)
    theirs.close()
    return ours


def _exactly(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = connection.recv(size - len(data))
        if not more:
            raise EOFError("the process that starts pyinfra has ended")
        data += more
    return data


def _serve(requests: socket.socket) -> None:
    """Fork for every request; returns in each child, ready to be pyinfra."""
    fork, waitpid, close = monkey.get_original("os", ["fork", "waitpid", "close"])
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody asks how the middle ones ended
    while True:
        head, passed, _, _ = socket.recv_fds(requests, HEADER, 2)
        if not head:
            sys.exit()
        ends, output = passed
        head += _exactly(requests, HEADER - len(head))
        request = json.loads(_exactly(requests, int.from_bytes(head, "big")))
        if fork():  # the middle one waits, so that this one can go on
            close(ends)
            close(output)
            continue
        requests.close()
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        pid = fork()
        if pid:
            close(output)
            os.write(ends, waitpid(pid, 0)[1].to_bytes(HEADER, "big"))
            os._exit(0)
        os.setsid()
        os.write(ends, os.getpid().to_bytes(HEADER, "big"))
        close(ends)
        os.chdir(request["folder"])
        os.environ.clear()
        os.environ.update(request["variables"])
        os.dup2(output, 1)
        os.dup2(output, 2)
        close(output)
        sys.argv = request["words"]
        return


def _main() -> None:
    requests = socket.socket(fileno=int(sys.argv[1]))  # a blocking one: made before the patches
    sys.path[0] = str(Path(sys.executable).parent)
    for name in LIBRARIES:
        import_module(name)
    for catalog in CATALOGS:
        module, _, function = catalog.rpartition(".")
        getattr(import_module(module), function)()
    gc.freeze()  # a collection in a child would copy every page
    _serve(requests)
    gevent.reinit()
    import_module("pyinfra_cli.main").main()


if __name__ == "__main__":
    _main()
