"""Exporters on sandbox hosts: an image that needs no registry, metrics, running collectors."""

from __future__ import annotations

import re
import shutil

from gpufleet_sandbox import Host
from gpufleet_sandbox.mirror.layout import IMAGE_PROGRAM
from gpufleet_sandbox.paths import cache_dir

REPOSITORY = "nvcr.io/nvidia/k8s/dcgm-exporter"
IMAGE = f"{REPOSITORY}:4.6.0-4.8.3-distroless"
COUNTERS = "DCGM_FI_DEV_GPU_TEMP, gauge, Temperature\nDCGM_FI_DRIVER_VERSION, label, Driver\n"
MAKE_IMAGE = f"""
set -e
root=$(mktemp -d)
mkdir -p "$root/bin" "$root/usr/bin" "$root/etc/dcgm-exporter" "$root/proc" "$root/dev" "$root/tmp"
cp "$(readlink -f "$(command -v busybox)")" "$root/bin/sh"
cp /etc/sim/dcgm-exporter "$root/usr/bin/"
printf '{COUNTERS}' > "$root/etc/dcgm-exporter/default-counters.csv"
tar -C "$root" -c . | docker import --change 'ENTRYPOINT ["/usr/bin/dcgm-exporter"]' - IMAGE
rm -r "$root"
"""


def import_exporter(host: Host, image: str = IMAGE) -> None:
    """Import an image with the sandbox's exporter into docker on the host."""
    program = host.scenario / "dcgm-exporter"
    shutil.copy2(cache_dir() / "mirror" / "tree" / IMAGE_PROGRAM, program)
    program.chmod(0o755)
    host.run(MAKE_IMAGE.replace("IMAGE", image))


def scrape(host: Host, address: str = "127.0.0.1:9400") -> str:
    """The text of /metrics; "" if nothing responds."""
    done = host.run(f"curl -fsS --max-time 5 http://{address}/metrics", check=False)
    return done.stdout if done.returncode == 0 else ""


def temperatures(text: str) -> list[str]:
    """UUIDs of the GPUs with a temperature."""
    return re.findall(r'^DCGM_FI_DEV_GPU_TEMP\{.*UUID="([^"]+)"', text, re.MULTILINE)


def gpus(host: Host) -> list[str]:
    """UUIDs that nvidia-smi lists."""
    return re.findall(r"UUID: ([^)]+)\)", host.output("nvidia-smi -L"))


def collectors(host: Host) -> list[str]:
    """Names of the running DCGM processes."""
    found = host.output("cat /proc/[0-9]*/comm | grep -xE 'nv-hostengine|dcgm-exporter' | sort")
    return found.split()
