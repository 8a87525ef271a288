"""Checks of this site: `gpufleet verify` runs them on every host, beside its own.

`host` is the host as testinfra has it: https://testinfra.readthedocs.io. `node` is what gpufleet
knows of it: node.data of the inventory, node.gpus, node.driver_version.
"""

import pytest


def test_root_has_space_for_a_driver(host, node):
    """Packages and a build of the kernel module take about 2 GiB."""
    if not node.gpus:
        pytest.skip("the host has no NVIDIA GPU")
    free = int(host.check_output("df -Pk / | awk 'NR == 2 { print $4 }'"))
    assert free >= 2 * 1024 * 1024, f"expected 2 GiB free in /, found {free // 1024} MiB"
