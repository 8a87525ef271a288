"""A fake healthy host: the output of its two scripts."""

from __future__ import annotations

import copy
import json
from dataclasses import dataclass, field
from typing import Any

import shipped_checks

from gpufleet.verify.inventory import Target
from gpufleet.verify.node import CheckedNode
from gpufleet.verify.probe import Output

VERSION = "580.95.05"
KERNEL = "6.1.0-42-amd64"
LIBRARY = f"/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.{VERSION}"
DRIVER = ("nvidia-dkms-580-open", "libnvidia-compute-580", "nvidia-utils-580")
TOOLKIT = ("nvidia-container-toolkit", "libnvidia-container1")
EXPORTER = {
    "datacenter-gpu-manager-4-core": "1:4.6.0-1",
    "datacenter-gpu-manager-exporter": "4.8.3.002-1",
}


IMAGE = "registry.corp/probe:1"  # one that docker has


@dataclass
class FakeHost:
    """A host as the output of its scripts. A test changes it, then runs the checks."""

    sections: dict[str, Output]
    runtimes: dict[str, Output]
    provenance: dict[str, Any]
    data: dict[str, Any] = field(default_factory=dict)
    commands: dict[str, Output] = field(default_factory=dict)  # by a part of the command
    calls: list[str] = field(default_factory=list)
    containers: dict[tuple[str, ...], Output] = field(default_factory=dict)  # (runtime, image)

    def set(self, name: str, text: str, status: int = 0) -> None:
        target = self.runtimes if name in self.runtimes else self.sections
        target[name] = Output(status, text)

    def run(self, command: str) -> Output:
        self.calls.append(command)
        return next((out for part, out in self.commands.items() if part in command), Output(0, ""))

    def script(self, name: str, *arguments: str) -> dict[str, Output]:
        self.calls.append(name)
        if name == "runtimes.sh":
            return self.runtimes
        if name == "container.sh":
            return {"container": self.containers[arguments]}
        provenance = Output(0, json.dumps(self.provenance))
        return {"provenance": provenance, **self.sections}

    def node(self) -> CheckedNode:
        return CheckedNode(Target("gpu-1", ("gpu_nodes",), self.data), self)

    def outcomes(self) -> dict[str, str]:
        """Check -> "passed", "skipped: why", or the message of its failure."""
        return shipped_checks.outcomes(self.node())

    def failures(self) -> dict[str, str]:
        """Check -> code, for the checks that fail."""
        found = shipped_checks.failures(self.node())
        return {check: text.split()[0] for check, text in found.items()}


def dpkg(name: str, version: str, status: str = "hold ok installed") -> str:
    return f"{name}\t{version}\tamd64\t{status}"


def cdi_spec(version: str, gpus: int, names: tuple[str, ...] = ()) -> str:
    found = (*map(str, range(gpus)), *names, "all")
    devices = [{"name": name} for name in found]
    path = f"/usr/lib/libnvidia-ml.so.{version}"
    mounts = [{"hostPath": path, "containerPath": path}]
    spec = {"kind": "nvidia.com/gpu", "devices": devices, "containerEdits": {"mounts": mounts}}
    return json.dumps(spec)


def units(**states: str) -> str:
    blocks = []
    for name, state in states.items():
        active, _, enabled = state.partition(",")
        load = "not-found" if active == "absent" else "loaded"
        unit = name.replace("_", "-")
        blocks.append(
            f"Id={unit}.service\nLoadState={load}\n"
            f"ActiveState={active if load == 'loaded' else 'inactive'}\nUnitFileState={enabled}\n"
        )
    return "\n".join(blocks)


CONTAINERD_DUMP = """
version = 2
[plugins."io.containerd.grpc.v1.cri".containerd]
default_runtime_name = "runc"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.nvidia]
runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.nvidia.options]
BinaryName = "/usr/bin/nvidia-container-runtime"
"""
PLUGINS = """TYPE                        ID         PLATFORMS      STATUS
io.containerd.snapshotter.v1 overlayfs  linux/amd64    ok
io.containerd.grpc.v1        cri        linux/amd64    ok
"""
DAEMON = {
    "registry-mirrors": ["https://mirror.example"],
    "features": {"buildkit": True},
    "runtimes": {"nvidia": {"path": "nvidia-container-runtime"}},
}


def _sections() -> dict[str, str]:
    packages = [dpkg(name, f"{VERSION}-0ubuntu1") for name in DRIVER]
    packages += [dpkg(name, "1.20.0-1") for name in TOOLKIT]
    packages += [dpkg(name, version) for name, version in EXPORTER.items()]
    packages += [dpkg("bash", "5.2.15-2+b7", "install ok installed")]
    packages += [dpkg("unattended-upgrades", "2.9.1", "install ok installed")]
    blacklist = "/etc/modprobe.d/gpufleet-nouveau.conf"
    return {
        "uid": "0",
        "os-release": 'ID=debian\nVERSION_ID="12"',
        "kernel": KERNEL,
        "pci": "0000:17:00.0 0x030200\n0000:2a:00.0 0x030200",
        "driver-gpus": "0000:17:00.0\n0000:2A:00.0",
        "modules": "nvidia_uvm\nnvidia",
        "loaded-version": VERSION,
        "module-file": f"/lib/modules/{KERNEL}/updates/dkms/nvidia.ko\n{VERSION}\nDual MIT/GPL",
        "dkms": f"nvidia/{VERSION}, {KERNEL}, x86_64: installed",
        "blacklist": "nouveau\nnova_core",
        "initramfs": f"etc/modprobe.d/gpufleet-nouveau.conf\nblacklists nouveau:\n{blacklist}",
        "library": LIBRARY,
        "smi-version": f"{VERSION}\n{VERSION}",
        "smi-list": "GPU 0: NVIDIA T4 (UUID: GPU-1)\nGPU 1: NVIDIA T4 (UUID: GPU-2)",
        "device-nodes": "/dev/nvidia0\n/dev/nvidia1\n/dev/nvidiactl\n/dev/nvidia-uvm",
        "services": units(
            nvidia_persistenced="active,enabled",
            nvidia_fabricmanager="absent",
            nvidia_dcgm="active,enabled",
            nvidia_dcgm_exporter="active,enabled",
        ),
        "metrics": "DCGM_FI_DEV_GPU_TEMP GPU-1\nDCGM_FI_DEV_GPU_TEMP GPU-2\n"
        "DCGM_FI_DEV_SM_CLOCK GPU-1\nDCGM_FI_DEV_SM_CLOCK GPU-2",
        "listening": "0100007F:24B8\n00000000:0016\n00000000000000000000000000000000:0016",
        "exporter-version": "DCGM Exporter version 4.6.0-4.8.3",
        "dpkg": "\n".join(packages),
        "dpkg-audit": "",
        "rpm-unfinished": "",
        "unattended": "Unattended-Upgrade::Package-Blacklist:: nvidia-\n"
        "Unattended-Upgrade::Package-Blacklist:: libnvidia-",
        "nvidia-ctk": "NVIDIA Container Toolkit CLI version 1.20.0\ncommit: 1234",
        "toolkit-config": '[nvidia-container-runtime]\nmode = "auto"\n',
        "low-level-runtime": "NVIDIA Container Runtime version 1.20.1\nrunc version 1.1.5",
        "toolkit-programs": "runs /usr/bin/nvidia-container-cli\nruns /usr/bin/nvidia-ctk",
        "cdi:/etc/cdi/nvidia.yaml": cdi_spec(VERSION, 2),
    }


def _runtimes() -> dict[str, str]:
    return {
        "runtime-services": units(docker="active,enabled", containerd="active,enabled"),
        "containerd-unit": "containerd.service",
        "docker-config": json.dumps(DAEMON),
        "docker-validate": "configuration OK",
        "docker-info": json.dumps({"Runtimes": {"runc": {}, "nvidia": {}}}),
        "docker-images": IMAGE,
        "containerd-config": 'version = 2\nroot = "/data"\n' + CONTAINERD_DUMP[13:],
        "containerd-dump": CONTAINERD_DUMP,
        "containerd-written": "1000",
        "containerd-started": "1001",
        "containerd-plugins": PLUGINS,
        "containerd-images": "",
    }


PROVENANCE = {
    "schema": 1,
    "files": {"/etc/modprobe.d/gpufleet-nvidia.conf": "0" * 64},
    "driver": {
        "version": VERSION,
        "modules": "open",
        "build": "dkms",
        "source": "nvidia",
        "packages": dict.fromkeys(DRIVER, f"{VERSION}-0ubuntu1"),
        "held": True,
    },
    "toolkit": {
        "version": "1.20.0",
        "packages": dict.fromkeys(TOOLKIT, "1.20.0-1"),
        "runtimes": {
            "docker": {
                "config": "/etc/docker/daemon.json",
                "user_keys": ["registry-mirrors", "features.buildkit"],
            },
            "containerd": {"config": "/etc/containerd/config.toml", "user_keys": ["root"]},
        },
        "cdi": {"path": "/etc/cdi/nvidia.yaml", "driver": VERSION},
    },
    "exporter": {
        "mode": "systemd",
        "version": "4.8.3.002",
        "image": None,
        "listen": "127.0.0.1:9400",
        "metrics": "http://127.0.0.1:9400/metrics",
        "units": ["nvidia-dcgm.service", "nvidia-dcgm-exporter.service"],
        "packages": EXPORTER,
        "held": True,
    },
}


def healthy() -> FakeHost:
    """A healthy Debian host with two GPUs, docker and containerd."""
    return FakeHost(
        {name: Output(0, text) for name, text in _sections().items()}
        | {"nova-on-disk": Output(1, "not found")},
        {name: Output(0, text) for name, text in _runtimes().items()},
        copy.deepcopy(PROVENANCE),
        containers=dict.fromkeys(
            [("docker", ""), ("containerd", ""), ("docker", IMAGE)],
            Output(0, "null nvidia0 nvidia1 nvidiactl"),
        ),
    )
