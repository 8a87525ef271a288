"""Commands of a host whose output and time have a limit.

A host that prints without an end costs its own checks, and neither the memory of this machine nor
the checks of other hosts.
"""

from __future__ import annotations

import os
import selectors
import subprocess
import time
from contextlib import suppress
from typing import Any

from gpufleet.core.limits import Limit
from gpufleet.verify.findings.hosts import OUTPUT_LIMIT
from gpufleet.verify.subject import CheckFailed

READ = 1 << 16  # bytes


class Exceeded(Exception):
    """A command exceeded its limit; the text says which."""


def bound(backend: Any, host: str, typed: bytes, limit: Limit) -> None:
    """Have a backend of testinfra run its commands with `limit`, and with `typed` as their input.

    Beyond the limit they raise CheckFailed (GF704).
    """

    def run_local(command: str, *arguments: str) -> Any:
        text = backend.encode(backend.quote(command, *arguments))
        try:
            status, output, errors = finished(text, typed, limit)
        except Exceeded as error:
            raise CheckFailed(host, OUTPUT_LIMIT(None, why=str(error))) from error
        return backend.result(status, text, output, errors)

    backend.run_local = run_local


def finished(command: bytes, typed: bytes, limit: Limit) -> tuple[int, bytes, bytes]:
    """Exit status, output and errors of one simple command of the shell; raises Exceeded."""
    deadline = time.monotonic() + limit.seconds
    pipe = subprocess.PIPE
    # exec: what is killed is the command itself, not a shell that waits for it
    with subprocess.Popen(
        b"exec " + command, shell=True, stdin=pipe, stdout=pipe, stderr=pipe
    ) as process:
        try:
            _type_in(process, typed)
            output, errors = _read(process, limit, deadline)
            return process.wait(max(0.0, deadline - time.monotonic())), output, errors
        except subprocess.TimeoutExpired as error:
            raise Exceeded(limit.too_slow) from error
        finally:
            if process.poll() is None:
                process.kill()


def _type_in(process: subprocess.Popen[bytes], typed: bytes) -> None:
    assert process.stdin is not None
    with suppress(BrokenPipeError), process.stdin as stream:
        stream.write(typed)


def _read(process: subprocess.Popen[bytes], limit: Limit, deadline: float) -> tuple[bytes, bytes]:
    """Both streams until both have ended; raises Exceeded."""
    assert process.stdout is not None
    assert process.stderr is not None
    found = {stream.fileno(): bytearray() for stream in (process.stdout, process.stderr)}
    with selectors.DefaultSelector() as selector:
        for descriptor in found:
            selector.register(descriptor, selectors.EVENT_READ)
        while selector.get_map():
            left = deadline - time.monotonic()
            if left <= 0:
                raise Exceeded(limit.too_slow)
            for key, _ in selector.select(left):
                if piece := os.read(key.fd, READ):
                    found[key.fd] += piece
                else:
                    selector.unregister(key.fd)
            if sum(map(len, found.values())) > limit.bytes:
                raise Exceeded(limit.too_large)
    output, errors = found.values()
    return bytes(output), bytes(errors)
