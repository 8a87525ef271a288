"""The process that keeps a run's Lease: it renews it as long as the run or a helm of the run lives,
and gives it back the moment that the last of them is gone, however it ended.

A process of its own, for a run may wait minutes at a prompt or be killed. It knows that a run is
alive by a pipe on its standard input, whose other end the run and its helm have: the kernel closes
it when both are gone. The pipe's first line tells what to keep.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gpufleet.kube.operations.lease import Lease

INPUT = 0
RENEW = 5.0  # seconds between two renewals
AGAIN = 1.0  # seconds before a renewal that failed is tried again
GIVING_BACK = 20.0  # seconds to try to give it back
MAIN = "from gpufleet.kube.operations.lease_keeper import main; main()"


@dataclass(slots=True)
class Keeper:
    """A run's end of it. `order`: what main() reads."""

    order: Mapping[str, Any] = field(repr=False)  # holds keys and tokens
    process: subprocess.Popen[bytes] | None = None

    def ensure(self) -> None:
        """Start the process, or start it again where something ended it."""
        if self.process is not None and self.process.poll() is None:
            return
        self.process = subprocess.Popen(
            [sys.executable, "-c", MAIN],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # what ends the run, as Ctrl-C does, leaves it to do its work
        )
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(self.order, default=str).encode() + b"\n")
        self.process.stdin.flush()

    @property
    def lifeline(self) -> int:
        """The descriptor that tells that we live; whoever inherits it counts as us."""
        assert self.process is not None
        assert self.process.stdin is not None
        return self.process.stdin.fileno()

    def dismiss(self) -> None:
        """We are gone: it gives the Lease back, and ends."""
        if self.process is not None and self.process.stdin is not None:
            self.process.stdin.close()

    def end(self) -> None:
        """There is nothing left to keep or to give back."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.dismiss()


def main() -> None:
    """Keep the Lease of the order on standard input until that is closed."""
    order = json.loads(_line())
    tempfile.tempdir = order["folder"]  # the run's: whoever of us is last removes it
    try:
        _keep(order)
    finally:
        shutil.rmtree(order["folder"], ignore_errors=True)  # keys of a run that was killed


def _line() -> bytes:
    """The first line; nothing beyond it is taken from the pipe."""
    read = bytearray()
    while not read.endswith(b"\n"):
        part = os.read(INPUT, 1)
        if not part:
            break
        read += part
    return bytes(read)


def _keep(order: Mapping[str, Any]) -> None:
    lives = _lives(RENEW)  # a run that changes nothing is over before the client is loaded
    from gpufleet.kube.kubeconfig import Kubeconfig
    from gpufleet.kube.operations.api import ClusterApi
    from gpufleet.kube.operations.lease import Lease

    api = ClusterApi(Kubeconfig(order["context"], order["kubeconfig"]))
    lease = Lease(api, order["identity"])
    while lives:
        renewed = _renewed(lease)
        if renewed is False:
            return  # another run has it: ours finds out before it writes
        lives = _lives(RENEW if renewed else AGAIN)
    _give_back(lease)


def _lives(seconds: float) -> bool:
    """Whether the run is still alive after that time; False as soon as it is not."""
    return not select.select([INPUT], [], [], seconds)[0]


def _renewed(lease: Lease) -> bool | None:
    """Whether it is renewed and ours; None where the API did not say."""
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
