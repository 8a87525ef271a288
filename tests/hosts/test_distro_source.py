"""driver_source = "distro": Debian's real packages, with a real DKMS build of the real module.

About six minutes, most of them gcc's. The packages come from this machine's own apt sources.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gpufleet.sandbox import Host
from gpufleet.sandbox.apt import machine_sources
from tests.hosts.deploying import run_deploy

pytestmark = [pytest.mark.hosts, pytest.mark.slow]
BRANCH = "535"  # Debian 12's
# nvidia-persistenced needs ioctls of a real driver, which the sandbox's kernel does not have
DATA = {
    "driver_source": "distro",
    "driver_branch": BRANCH,
    "driver_persistence": False,
    "toolkit_enabled": False,
}


def boot_into_the_archives_kernel(host: Host) -> str:
    """Make the host's kernel the one that the archive has headers for; the release."""
    host.put("/etc/apt/sources.list", "\n".join(machine_sources().lines(["main"])) + "\n")
    host.run("rm -f /etc/apt/sources.list.d/* && apt-get update -q")
    release = host.output(
        "apt-cache depends linux-headers-amd64 | grep -o '6[.][0-9.]*-[0-9]*-amd64'"
    ).strip()
    folder = f"/lib/modules/{release}"
    host.run(
        f"mkdir -p {folder} && touch {folder}/modules.order {folder}/modules.builtin && "
        f"depmod {release} && touch /boot/vmlinuz-{release} && "
        f"echo CONFIG_RD_GZIP=y > /boot/config-{release} && "
        f"update-initramfs -c -k {release} && echo {release} > /etc/sim/kernel"
    )
    host.reboot()
    assert host.output("uname -r").strip() == release
    return release


@pytest.mark.skipif(
    machine_sources().suite != "bookworm", reason="this machine's archive is not Debian 12's"
)
def test_debians_own_driver_is_built_and_loaded(bare_host: Callable[[str], Host]) -> None:
    host = bare_host("debian12")
    release = boot_into_the_archives_kernel(host)

    first = run_deploy("gpu_node", [host], per_host={host.name: DATA}, timeout=1500)
    assert first.returncode == 0, first.output
    version = first.report[host.name]["driver"]["after"]
    assert version.startswith(f"{BRANCH}.")

    status = host.output("dkms status")
    assert f"nvidia-current/{version}, {release}, x86_64: installed" in status
    size = int(host.output("stat -c %s $(modinfo -n nvidia-current)"))
    assert size > 10_000_000, "a real module is tens of megabytes"
    assert host.output("cat /sys/module/nvidia/version").strip() == version
    assert "non-free" in host.output("cat /etc/apt/sources.list.d/gpufleet-components.list")
    assert host.output("nvidia-smi --query-gpu=driver_version --format=csv,noheader").split()[
        0
    ] == (version)

    second = run_deploy("gpu_node", [host], per_host={host.name: DATA})
    assert second.returncode == 0, second.output
    assert second.changes() == {host.name: 0}, second.output
