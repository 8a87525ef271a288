"""Containers on sandbox hosts, from an image that needs no registry."""

from __future__ import annotations

from gpufleet_sandbox import Host

IMAGE = "gpufleet/probe"
MAKE_IMAGE = """
set -e
root=$(mktemp -d)
mkdir "$root/bin" "$root/proc" "$root/etc"
cp "$(readlink -f "$(command -v busybox)")" "$root/bin/busybox"
for name in sh ls sleep; do ln -s busybox "$root/bin/$name"; done
tar -C "$root" -c . | docker import - IMAGE
rm -r "$root"
"""
WITH_GPUS = "--runtime nvidia -e NVIDIA_VISIBLE_DEVICES=all"


def import_image(host: Host) -> None:
    """Import gpufleet/probe, a static busybox, into docker on the host."""
    host.run(MAKE_IMAGE.replace("IMAGE", IMAGE))


def start(host: Host, name: str, options: str = "") -> None:
    """Start a container that keeps running."""
    host.run(f"docker run -d --name {name} --network none {options} {IMAGE} sleep 3600")


def running(host: Host) -> list[str]:
    """Names of the running containers."""
    return host.output("docker ps --format '{{.Names}}'").split()


def devices(host: Host, options: str = WITH_GPUS) -> list[str]:
    """NVIDIA's device files in a container with these options."""
    seen = host.output(f"docker run --rm --network none {options} {IMAGE} ls /dev")
    return [name for name in seen.split() if name.startswith("nvidia")]


def started_at(host: Host, unit: str) -> str:
    """Time of the unit's last start, in microseconds started_at boot."""
    return host.output(f"systemctl show -p ActiveEnterTimestampMonotonic --value {unit}")
