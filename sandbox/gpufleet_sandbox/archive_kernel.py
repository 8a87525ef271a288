"""A host with the kernel that its distribution's archive has headers for.

DKMS builds the distribution's real driver on it, as on a real machine.
"""

from __future__ import annotations

from typing import Any

from gpufleet_sandbox.apt import machine_sources
from gpufleet_sandbox.host import Host

SUITE, KIND = "bookworm", "debian12"  # the archive, and the kind of host that it fits
DRIVER: dict[str, Any] = {  # settings for gpu_node to install the archive's driver
    "driver_source": "distro",
    "driver_branch": "535",
    "driver_persistence": False,  # the daemon needs ioctls that only a real kernel module has
    "toolkit_enabled": False,  # not in the archive
}


def boot_archive_kernel(host: Host) -> str:
    """Configure this machine's apt sources ("main" only) on a Debian host, and boot the kernel of
    its archive. Returns the kernel release."""
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
    return release
