"""Manual setup of a node on a sandbox host, and ways to break it: shell, no product code."""

from __future__ import annotations

from dataclasses import dataclass

VERSION = "580.159.03"
TOOLKIT = "1.20.1"
LIBRARY = "/usr/lib/x86_64-linux-gnu/libnvidia-ml.so"
REPOSITORIES = (
    "http://mirror/compute/cuda/repos/debian12/x86_64/ /",
    "http://mirror/libnvidia-container/stable/deb/amd64/ /",
    "http://mirror/archive/debian12/ /",
)

# The commands of an administrator. The test writes the record.
INSTALL = f"""
set -eu
export DEBIAN_FRONTEND=noninteractive
cat > /etc/apt/preferences.d/by-hand <<END
Package: *nvidia* libcuda1
Pin: version {VERSION}*
Pin-Priority: 1001
END
printf 'blacklist nouveau\\noptions nouveau modeset=0\\n' > /etc/modprobe.d/by-hand.conf
apt-get update -q
apt-get install -y -q "linux-headers-$(uname -r)"
apt-get install -y -q nvidia-driver-cuda nvidia-kernel-open-dkms
rm /etc/apt/preferences.d/by-hand
update-initramfs -u
modprobe nvidia
modprobe nvidia_uvm
systemctl enable --now nvidia-persistenced
apt-get install -y -q nvidia-container-toolkit={TOOLKIT}-1 \
    nvidia-container-toolkit-base={TOOLKIT}-1 \
    libnvidia-container-tools={TOOLKIT}-1 libnvidia-container1={TOOLKIT}-1
dpkg-query -W -f '${{Package}} ${{Version}}\\n' | awk '/{VERSION}|{TOOLKIT}/ {{print $1}}' |
    xargs apt-mark hold
echo '{{"registry-mirrors": ["https://registry.example"], "features": {{"buildkit": true}}}}' \
    > /etc/docker/daemon.json
cat > /etc/containerd/config.toml << 'END'
version = 2
oom_score = -999
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
END
nvidia-ctk runtime configure --runtime=docker
nvidia-ctk runtime configure --runtime=containerd \
    --drop-in-config=/etc/containerd/conf.d/99-nvidia.toml
systemctl restart containerd docker
nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml
"""


@dataclass(frozen=True)
class Breakage:
    """A defect of a host: how to cause it, how to fix it, and the checks that must fail."""

    name: str
    cause: str
    fix: str
    found_by: tuple[str, ...]


def file_away(path: str) -> tuple[str, str]:
    """Shell that moves a file away, and shell that restores it."""
    kept = "/root/kept" + path.replace("/", "-")
    return f"mv {path} {kept}", f"mv {kept} {path}"


def file_edited(path: str, sed: str) -> tuple[str, str]:
    """Shell that edits a file, and shell that restores it with its modification time."""
    kept = "/root/kept" + path.replace("/", "-")
    return f"cp -p {path} {kept} && sed -i '{sed}' {path}", f"mv {kept} {path}"


NEXT_HEADERS = "linux-headers-6.1.0-100-amd64"
MODULES = "/lib/modules/$(uname -r)/updates/dkms"
NVSWITCH = "/run/sim/pci/0000:05:00.0"
DAEMON, CONTAINERD = "/etc/docker/daemon.json", "/etc/containerd/config.toml"
RECORD = "/var/lib/gpufleet/provenance.json"
DROP_IN = "/etc/containerd/conf.d/99-nvidia.toml"
RESTART = "systemctl reset-failed docker; systemctl restart docker"
FORCE = "apt-get install -y -q --allow-change-held-packages --allow-downgrades"

BREAKAGES = (
    Breakage("no record", *file_away(RECORD), ("provenance",)),
    Breakage(
        "package unpacked but not configured",
        f"cd /tmp && apt-get download {NEXT_HEADERS} && dpkg --unpack {NEXT_HEADERS}_*",
        f"dpkg --purge {NEXT_HEADERS}",
        ("package_manager",),
    ),
    Breakage(
        "package removed",
        "dpkg --force-all -r libnvidia-gpucomp",
        f"{FORCE} libnvidia-gpucomp={VERSION}-1 && apt-mark hold libnvidia-gpucomp",
        ("driver_packages",),
    ),
    Breakage(
        "package of another branch",
        "apt-get install -y -q nvidia-modprobe",
        "apt-get purge -y -q nvidia-modprobe",
        ("one_version",),
    ),
    Breakage(
        "driver not held", "apt-mark unhold libcuda1", "apt-mark hold libcuda1", ("driver_held",)
    ),
    Breakage(
        "module unloaded",
        "systemctl stop nvidia-persistenced && modprobe -r nvidia_uvm && modprobe -r nvidia",
        "modprobe nvidia && modprobe nvidia_uvm && systemctl start nvidia-persistenced",
        ("module_loaded",),
    ),
    Breakage(
        "library of another version",
        f"mv {LIBRARY}.{VERSION} {LIBRARY}.550.163.01 && ldconfig",
        f"mv {LIBRARY}.550.163.01 {LIBRARY}.{VERSION} && ldconfig",
        ("library",),
    ),
    Breakage(
        "module file gone",
        f"mkdir /root/ko && mv {MODULES}/nvidia.ko* /root/ko/ && depmod",
        f"mv /root/ko/* {MODULES}/ && rmdir /root/ko && depmod",
        ("module_file",),
    ),
    Breakage(
        "module not built",
        f"dkms uninstall nvidia/{VERSION} -k $(uname -r)",
        f"dkms install nvidia/{VERSION} -k $(uname -r)",
        ("dkms",),
    ),
    Breakage(
        "no blacklist",
        "mkdir /root/mp && for f in $(grep -ls '^blacklist nouveau' /etc/modprobe.d/* "
        "/usr/lib/modprobe.d/*); do mkdir -p /root/mp$(dirname $f); mv $f /root/mp$f; done",
        "cp -a /root/mp/. / && rm -r /root/mp",
        ("blacklist",),
    ),
    Breakage(
        "device node gone",
        "rm /dev/nvidia-uvm",
        "mknod -m 666 /dev/nvidia-uvm c 1 3",
        ("device_nodes",),
    ),
    Breakage(
        "persistence daemon stopped",
        "systemctl stop nvidia-persistenced",
        "systemctl start nvidia-persistenced",
        ("persistence_daemon",),
    ),
    Breakage(
        "persistence daemon not enabled",
        "systemctl disable nvidia-persistenced",
        "systemctl enable nvidia-persistenced",
        ("persistence_daemon",),
    ),
    Breakage(
        "NVSwitch without fabric manager",
        f"cp -r /run/sim/pci/0000:3b:00.0 {NVSWITCH} && rm -f {NVSWITCH}/driver "
        f"&& echo 0x068000 > {NVSWITCH}/class",
        f"rm -r {NVSWITCH}",
        ("fabric_manager",),
    ),
    Breakage(
        "toolkit package of another version",
        "cd /tmp && apt-get download libnvidia-container-tools=1.18.2-1 && dpkg --force-all -i "
        "libnvidia-container-tools_1.18.2* && apt-mark hold libnvidia-container-tools",
        f"{FORCE} libnvidia-container-tools={TOOLKIT}-1 && apt-mark hold libnvidia-container-tools",
        ("toolkit_packages",),
    ),
    Breakage(
        "another nvidia-ctk in the path",
        "printf '#!/bin/sh\\necho NVIDIA Container Toolkit CLI version 1.2.3\\n' "
        "> /usr/local/bin/nvidia-ctk && chmod 755 /usr/local/bin/nvidia-ctk",
        "rm /usr/local/bin/nvidia-ctk",
        ("toolkit_binary",),
    ),
    Breakage(
        "toolkit not held",
        "apt-mark unhold libnvidia-container1",
        "apt-mark hold libnvidia-container1",
        ("toolkit_held",),
    ),
    Breakage(
        "docker stopped",
        "systemctl stop docker.socket docker",
        "systemctl start docker.socket docker",
        ("runtime_up[docker]",),
    ),
    Breakage("broken daemon.json", *file_edited(DAEMON, "$ s/}/},/"), ("runtime_valid[docker]",)),
    Breakage(
        "broken config.toml", *file_edited(CONTAINERD, "$ a [["), ("runtime_valid[containerd]",)
    ),
    Breakage(
        "nvidia runtime gone from docker",
        *file_edited(DAEMON, 's/"nvidia": {/"other": {/'),
        ("runtime_ours[docker]",),
    ),
    Breakage(
        "nvidia runtime gone from containerd", *file_away(DROP_IN), ("runtime_ours[containerd]",)
    ),
    Breakage(
        "user's docker key gone",
        *file_edited(DAEMON, "s/buildkit/cdi/"),
        ("runtime_user_keys[docker]",),
    ),
    Breakage(
        "user's containerd key gone",
        f"{file_edited(CONTAINERD, '/oom_score/d')[0]}; touch -d '1 hour ago' {CONTAINERD}",
        file_edited(CONTAINERD, "")[1],
        ("runtime_user_keys[containerd]",),
    ),
    Breakage(
        "docker runs with an old configuration",
        f"{file_away(DAEMON)[0]} && {RESTART}; {file_away(DAEMON)[1]}",
        RESTART,
        ("runtime_knows[docker]",),
    ),
    Breakage(
        "containerd runs with an old configuration",
        f"touch {CONTAINERD}",
        f"touch -d '1 hour ago' {CONTAINERD}",
        ("runtime_knows[containerd]",),
    ),
    Breakage(
        "stale CDI spec",
        *file_edited("/etc/cdi/nvidia.yaml", f"s/{VERSION}/550.163.01/"),
        ("cdi_spec",),
    ),
    Breakage(
        "second, stale CDI spec",
        "mkdir -p /var/run/cdi && "
        f"sed s/{VERSION}/550.163.01/ /etc/cdi/nvidia.yaml > /var/run/cdi/old.yaml",
        "rm /var/run/cdi/old.yaml",
        ("cdi_spec",),
    ),
    Breakage(
        "toolkit hook not executable",
        "chmod a-x /usr/bin/nvidia-container-runtime-hook",
        "chmod a+x /usr/bin/nvidia-container-runtime-hook",
        ("toolkit_programs",),
    ),
)

# Faults of the sandbox by name, and the checks that must fail.
FAULTS = {
    "dpkg-interrupted": ("package_manager",),
    "gpu-lost": ("gpu_count",),
    "unreachable": ("reachable",),
}
