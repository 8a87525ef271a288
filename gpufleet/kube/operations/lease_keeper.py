"""The process that renews a run's Lease while the run or one of its helm processes is alive, and
releases it as soon as the last of them has ended, in any way.

It is a separate process because a run may wait minutes at a prompt, or be killed. Its standard
input is a pipe whose other end the run and helm have open: the kernel closes it when both have
ended. The first line on the pipe is the order: which Lease to renew.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from gpufleet.core.python import python_code

if TYPE_CHECKING:
    from gpufleet.kube.operations.lease import Lease

INPUT = 0
RENEW = 5.0  # seconds between two renewals
AGAIN = 1.0  # seconds before a failed renewal is retried
GIVING_BACK = 20.0  # seconds to retry the release
MAIN = "from gpufleet.kube.operations.lease_keeper import main; main()"


@dataclass(slots=True)
class Keeper:
    """The run's side. `order`: the input of main()."""

    order: Mapping[str, Any] = field(repr=False)  # holds keys and tokens
    process: subprocess.Popen[bytes] | None = None

    def ensure(self) -> None:
        """Start the process, or restart it if it was killed."""
        if self.process is not None and self.process.poll() is None:
            return
        self.process = subprocess.Popen(
            python_code(MAIN),
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # signals to the run, such as Ctrl-C, do not reach it
        )
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(self.order, default=str).encode() + b"\n")
        self.process.stdin.flush()

    @property
    def lifeline(self) -> int:
        """The descriptor that shows that the run is alive; processes that inherit it count too."""
        assert self.process is not None
        assert self.process.stdin is not None
        return self.process.stdin.fileno()

    def dismiss(self) -> None:
        """End the run's side: the process releases the Lease and exits."""
        if self.process is not None and self.process.stdin is not None:
            self.process.stdin.close()

    def end(self) -> None:
        """Stop the process: nothing remains to renew or release."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.dismiss()


def main() -> None:
    """Renew the Lease of the order on standard input until that is closed."""
    order = json.loads(_line())
    tempfile.tempdir = order["folder"]  # the run's: the last process removes it
    try:
        _renew(order)
    finally:
        shutil.rmtree(order["folder"], ignore_errors=True)  # keys of a killed run


def _line() -> bytes:
    """The first line; nothing after it is read from the pipe."""
    read = bytearray()
    while not read.endswith(b"\n"):
        part = os.read(INPUT, 1)
        if not part:
            break
        read += part
    return bytes(read)


def _renew(order: Mapping[str, Any]) -> None:
    lives = _lives(RENEW)  # a run that changes nothing ends before the client is loaded
    from gpufleet.kube.kubeconfig import Kubeconfig
    from gpufleet.kube.operations.api import ClusterApi
    from gpufleet.kube.operations.lease import Lease

    api = ClusterApi(Kubeconfig(order["context"], order["kubeconfig"]))
    lease = Lease(api, order["identity"])
    while lives:
        renewed = _renewed(lease)
        if renewed is False:
            return  # another run holds it: ours checks before it writes
        lives = _lives(RENEW if renewed else AGAIN)
    _give_back(lease)


def _lives(seconds: float) -> bool:
    """Whether the run is alive after that time; False as soon as it has ended."""
    return not select.select([INPUT], [], [], seconds)[0]


def _renewed(lease: Lease) -> bool | None:
    """Whether it is renewed and ours; None if the API did not respond."""
    from gpufleet.kube.operations.access import ClusterProblem

    try:
        return lease.renew()
    except ClusterProblem:
        return None


def _give_back(lease: Lease) -> None:
    from gpufleet.kube.operations.access import ClusterProblem

    end = time.monotonic() + GIVING_BACK
    while time.monotonic() < end:
        try:
            return lease.give_back()
        except ClusterProblem:
            time.sleep(AGAIN)
    return None
