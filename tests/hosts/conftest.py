"""Hosts for the tests: one sandbox per session. A host starts when a test needs it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

import pytest

from gpufleet_sandbox import Host, Sandbox
from tests.naming import RUN

HostFactory = Callable[[str], Host]


@pytest.fixture(scope="session")
def sandbox(worker_id: str) -> Iterator[Sandbox]:
    """One per pytest-xdist worker; GPUFLEET_KEEP_SANDBOX=1 leaves it running."""
    box = Sandbox(f"{RUN}-{worker_id}", progress=print, images="imitation")
    box.up([])
    yield box
    if os.environ.get("GPUFLEET_KEEP_SANDBOX") != "1":
        box.down()


@pytest.fixture(scope="session")
def sandbox_host(sandbox: Sandbox) -> HostFactory:
    """`sandbox_host("el7")`: that host, started when needed, as earlier tests left it."""

    def find(kind: str) -> Host:
        if kind not in sandbox.state.hosts:
            sandbox.up([kind])
        return sandbox.host(kind)

    return find


@pytest.fixture(scope="session")
def bare_host(sandbox: Sandbox, sandbox_host: HostFactory) -> HostFactory:
    """`bare_host("el7")`: that host fresh from its image, with nothing installed (about 2 s).

    Each call resets the host, so module fixtures can use it as well as tests.
    """

    def find(kind: str) -> Host:
        was_there = kind in sandbox.state.hosts
        found = sandbox_host(kind)
        if was_there:
            found.reset()
        if kind == "el7":
            found.run("mkdir -p /etc/dracut.conf.d")  # of dracut's package, which is imitated
        return found

    return find


@pytest.fixture(scope="session")
def mirror_host(sandbox: Sandbox) -> Host:
    """The package mirror of the session's sandbox."""
    return sandbox.host("mirror")
