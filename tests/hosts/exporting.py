"""Exporters on sandbox hosts: an image that needs no registry, metrics, running collectors."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

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


PROGRAM = "/etc/sim/dcgm-exporter --collectors /root/counters.csv --address"
RUN = "systemd-run -q --collect --unit"
DOCKER = f"docker run -d --network host --runtime nvidia -e NVIDIA_VISIBLE_DEVICES=all {IMAGE}"
# A rival: commands that start and stop it, code of the finding, words of its message.
RIVALS = {
    "an exporter of a DaemonSet": (
        f"{RUN} in-a-pod --slice kubepods-pod7.slice {PROGRAM} 127.0.0.1:9400",
        "systemctl stop in-a-pod", "GF581", "of a pod of Kubernetes",
    ),
    "the user's host engine": (
        "systemctl start nvidia-dcgm", "systemctl stop nvidia-dcgm",
        "GF581", "DCGM's host engine (process", "of nvidia-dcgm.service",
    ),
    "an exporter of another unit at another port": (
        f"{RUN} by-hand {PROGRAM} 127.0.0.1:19400", "systemctl stop by-hand",
        "GF581", "dcgm-exporter (process", "of by-hand.service",
    ),
    "an exporter in a container": (
        f"{DOCKER} --address 127.0.0.1:9400 | cut -c1-12 > /root/id",
        "docker rm -f $(cat /root/id)", "GF581", "in container",
    ),
    "an exporter under another name": (
        f"cp /etc/sim/dcgm-exporter /root/starship && {RUN} renamed /root/starship "
        "--collectors /root/counters.csv --address 127.0.0.1:9400",
        "systemctl stop renamed", "GF581", "Alibaba's renamed dcgm-exporter",
    ),
    "a process known only by its library": (
        f"cp /etc/sim/dcgm-exporter /root/telemetry && {RUN} secret /root/telemetry "
        "--collectors /root/counters.csv --address 127.0.0.1:19400",
        "systemctl stop secret", "GF581", "telemetry (process", "of secret.service",
    ),
    "something else at the port": (
        f"{RUN} web busybox httpd -f -p 9400", "systemctl stop web",
        "GF582", "of web.service) already listens on 127.0.0.1:9400",
    ),
}  # fmt: skip


def import_exporter(host: Host, image: str = IMAGE) -> None:
    """Import an image with the sandbox's exporter into docker on the host."""
    program = host.scenario / "dcgm-exporter"
    shutil.copy2(cache_dir() / "mirror" / "tree" / IMAGE_PROGRAM, program)
    program.chmod(0o755)
    host.run(MAKE_IMAGE.replace("IMAGE", image))


def scrape(host: Host, address: str = "127.0.0.1:9400") -> str:
    """The text of /metrics, or "" if the exporter does not respond."""
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


@contextmanager
def rival(host: Host, name: str) -> Iterator[None]:
    """Another collector of GPU metrics runs on the host."""
    start, stop, *_ = RIVALS[name]
    host.run(f"set -e\n{start}")
    host.run("timeout 10 sh -c 'until grep -qi :24B8 /proc/net/tcp /proc/net/tcp6 || "
             "pgrep -f \"hostengine|:19400\"; do sleep 0.1; done'")  # fmt: skip
    try:
        yield
    finally:
        host.run(stop)
