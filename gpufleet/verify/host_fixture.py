"""A pytest plugin with one fixture. It is registered after testinfra, to replace its `host`."""

from __future__ import annotations

import pytest
import testinfra.host

from gpufleet.verify.node import CheckedNode
from gpufleet.verify.probe import HostProbe


@pytest.fixture(scope="session")
def host(node: CheckedNode) -> testinfra.host.Host:
    """testinfra's host, over the connection that `node` uses."""
    assert isinstance(node.probe, HostProbe), "checks of a host without one are skipped"
    return node.probe.host
