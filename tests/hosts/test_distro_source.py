"""driver_source = "distro": Debian's real packages, with a real DKMS build of the real module.

About six minutes, mostly compilation. The packages come from this machine's own apt sources.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gpufleet_sandbox import Host
from gpufleet_sandbox.apt import machine_sources
from gpufleet_sandbox.archive_kernel import DRIVER, KIND, SUITE, boot_archive_kernel
from tests.hosts.deploying import run_deploy

pytestmark = [pytest.mark.hosts, pytest.mark.slow]


@pytest.mark.claim("Debian's own driver is built by DKMS and loaded.", level=4)
def test_debians_own_driver_is_built_and_loaded(bare_host: Callable[[str], Host]) -> None:
    if machine_sources().suite != SUITE:
        pytest.skip("this machine's archive is not Debian 12's")
    host = bare_host(KIND)
    release = boot_archive_kernel(host)
    assert host.output("uname -r").strip() == release

    first = run_deploy("gpu_node", [host], per_host={host.name: DRIVER}, timeout=1500)
    assert first.returncode == 0, first.output
    version = first.report[host.name]["driver"]["after"]
    assert version.startswith(f"{DRIVER['driver_branch']}.")

    status = host.output("dkms status")
    assert f"nvidia-current/{version}, {release}, x86_64: installed" in status
    size = int(host.output("stat -c %s $(modinfo -n nvidia-current)"))
    assert size > 10_000_000, "a real module is tens of megabytes"
    assert host.output("cat /sys/module/nvidia/version").strip() == version
    assert "non-free" in host.output("cat /etc/apt/sources.list.d/gpufleet-components.sources")
    assert host.output("nvidia-smi --query-gpu=driver_version --format=csv,noheader").split()[
        0
    ] == (version)

    second = run_deploy("gpu_node", [host], per_host={host.name: DRIVER})
    assert second.returncode == 0, second.output
    assert second.changes() == {host.name: 0}, second.output
