"""A pytest plugin of one fixture. It is registered after testinfra's, whose `host` it replaces."""

from __future__ import annotations

import pytest
import testinfra.host

from gpufleet.verify.node import Node
from gpufleet.verify.probe import HostProbe


@pytest.fixture(scope="session")
def host(node: Node) -> testinfra.host.Host:
    """The same host as testinfra has it, over the connection that `node` uses."""
    assert isinstance(node.probe, HostProbe), "checks of a host without one are skipped"
    return node.probe.host
