"""`gpufleet doctor` on a real host that is broken in one or two places: the verdict names them, and
a healthy host that is busy passes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from deploying import run_deploy
from examining import run_gpufleet, write_inventory

from gpufleet_sandbox import Host
from tests.hosts.conftest import HostFactory

pytestmark = [
    pytest.mark.hosts,
    pytest.mark.extended,
    pytest.mark.claim(
        "`doctor` names the cause of a fault on a host, with its consequences under it, and passes "
        "healthy hosts that are busy.",
        level=3,
    ),
]

KIND = "ubuntu2204"
SPEC, CONFIG = "/var/run/cdi/nvidia.yaml", "/etc/containerd/config.toml"
RECORD, SMI = "/var/lib/gpufleet/provenance.json", "/usr/bin/nvidia-smi"
OLD = "s/libnvidia-ml[.]so[.][0-9.]*/libnvidia-ml.so.470.1/"  # the library of another driver
Commands = tuple[str, str]  # breaks the host, and repairs it


def changed(path: str, how: str) -> Commands:
    """A file that a command changes."""
    kept = f"/root/{Path(path).name}.kept"
    return f"cp -a {path} {kept} && {how}", f"mv {kept} {path}"


def program(path: str, text: str) -> Commands:
    """A program in the place of another one."""
    write = f"mv {path} /root/real && printf '#!/bin/sh\\n{text}\\n' >{path} && chmod +x {path}"
    return write, f"mv /root/real {path}"


def failing_unit(name: str) -> Commands:
    path = f"/etc/systemd/system/{name}"
    unit = "[Service]\\nExecStart=/bin/false\\n[Install]\\nWantedBy=multi-user.target\\n"
    return (
        f"printf '{unit}' >{path}; systemctl daemon-reload; systemctl enable {name}; "
        f"systemctl start {name}; systemctl is-failed --wait {name} || systemctl is-failed {name}",
        f"systemctl disable {name}; rm {path}; systemctl daemon-reload; systemctl reset-failed",
    )


def xid(text: str) -> Commands:
    """An XID of the host's GPU in the kernel's log."""
    find = "set -- $(grep -l '^0x0302' /run/sim/pci/*/class) && slot=${1%/class} slot=${slot##*/}"
    line = f"NVRM: Xid (PCI:%s): {text}"
    return log(line, find, "${slot%.0}"), log("NVRM: loading NVIDIA UNIX x86_64 Kernel Module")


def log(line: str, before: str = "true", *words: str) -> str:
    """A kernel log of one line, in a file instead of the machine's log."""
    time = "$(cut -d. -f1 /proc/uptime)"
    printed = f"printf '4,1,%s000000,-;{line}\\n' {' '.join((time, *words))}"
    return f"rm -f /dev/kmsg; {before} && {printed} >/dev/kmsg"


FAULTS: dict[str, tuple[Commands, str]] = {
    "persistence daemon is stopped": (
        ("systemctl stop nvidia-persistenced", "systemctl start nvidia-persistenced"),
        "chain.persistence",
    ),
    "containerd is stopped": (
        ("systemctl stop containerd", "systemctl start containerd"), "chain.runtime"
    ),
    "CDI of another driver": (changed(SPEC, f"sed -i '{OLD}' {SPEC}"), "chain.cdi"),
    "no CDI": (changed(SPEC, f"rm {SPEC}"), "chain.cdi"),
    "two CDI specifications": (
        (f"mkdir /etc/cdi; sed '{OLD}' {SPEC} >/etc/cdi/nvidia.yaml", "rm -r /etc/cdi"),
        "chain.cdi",
    ),
    "invalid config.toml": (changed(CONFIG, f"echo 'version = = 3' >{CONFIG}"), "chain.config"),
    "toolkit was removed": (
        (
            "dpkg --remove --force-all nvidia-container-toolkit nvidia-container-toolkit-base",
            "apt-get install -y nvidia-container-toolkit nvidia-container-toolkit-base",
        ),
        "chain.toolkit",
    ),
    "damaged record": (changed(RECORD, f"echo '{{' >{RECORD}"), "host.plan"),
    "module is not loaded": (
        (
            "systemctl stop nvidia-persistenced; modprobe -r nvidia_uvm nvidia",
            "modprobe nvidia; modprobe nvidia_uvm; systemctl start nvidia-persistenced",
        ),
        "chain.loaded",
    ),
    "library of NVML is missing": (
        (
            "mv /usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1 /root/nvml",
            "mv /root/nvml /usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1",
        ),
        "chain.nvml",
    ),
    "nvidia-smi hangs": (program(SMI, "sleep 600"), "chain.nvml"),
    "nvidia-smi fails": (
        program(SMI, "echo Failed to initialize NVML: Unknown Error; exit 255"), "chain.nvml"
    ),
    "exporter failed": (failing_unit("nvidia-dcgm-exporter.service"), "chain.exporter"),
    "kubelet failed": (failing_unit("kubelet.service"), "chain.kubelet"),
    "XID 79": (xid("79, GPU has fallen off the bus."), "gpu.xid_reboot"),
    "XID 48": (xid("48, pid=1, name=python, DBE detected on GPU"), "gpu.xid_reset"),
    "XID 54": (xid("54, pid=1, Auxiliary power is not connected"), "gpu.xid_mechanics"),
    "XID 62": (xid("62, pid=1, 2b4d3"), "gpu.xid_reset"),
    "XID 64": (xid("64, pid=1, Row Remapper: failed"), "gpu.xid_reset"),
    "XID 74": (xid("74, pid=1, NVLink: fatal error on link 6"), "gpu.xid_nvlink"),
    "XID 94": (xid("94, pid=1, Contained: LTC"), "gpu.xid_hardware"),
    "XID 95": (xid("95, pid=1, Uncontained: memory"), "gpu.xid_reset"),
    "XID 109": (xid("109, pid=1, Ch 0a, errorString CTX SWITCH TIMEOUT"), "gpu.xid_reset"),
    "XID 119": (xid("119, pid=1, Timeout after 6s of waiting for RPC response"), "gpu.xid_reset"),
    "XID 140": (xid("140, pid=1, unrecovered ECC"), "gpu.xid_reset"),
    "XID 145": (xid("145, NVLink RLW_CTRL"), "gpu.xid_nvlink"),
    "XID 999": (xid("999, pid=1, something new"), "gpu.xid_unknown"),
}  # fmt: skip
SANDBOX_FAULTS = {
    "gpu-lost": "chain.gpus",
    "dpkg-interrupted": "host.packages",
    "clock-skew": "host.clock",
    "disk-full": "host.disk",
}
# two faults: those that do not depend on one another are two causes
PAIRS: dict[tuple[str, str], set[str]] = {
    ("persistence daemon is stopped", "XID 79"): {"chain.persistence", "gpu.xid_reboot"},
    ("CDI of another driver", "containerd is stopped"): {"chain.cdi", "chain.runtime"},
    ("invalid config.toml", "containerd is stopped"): {"chain.config"},
    ("nvidia-smi fails", "exporter failed"): {"chain.nvml"},
    ("module is not loaded", "exporter failed"): {"chain.loaded"},
    ("containerd is stopped", "kubelet failed"): {"chain.runtime"},
    ("toolkit was removed", "XID 94"): {"chain.toolkit", "gpu.xid_hardware"},
}
HEALTHY_FAULTS = ("gpu-busy", "module-busy", "apt-lock", "new-kernel", "missing-headers")
HEALTHY: dict[str, Commands] = {
    "XID of a program": xid("31, pid=1234, name=python, Ch 08, intr 10. MMU Fault"),
    "XID of a shader": xid("13, pid=77, name=python, Graphics SM Warp Exception"),
    "row to be remapped": xid("63, pid=1, Row Remapper: New row marked for remapping"),
    "persistence daemon is masked": (
        "systemctl stop nvidia-persistenced; systemctl mask nvidia-persistenced",
        "systemctl unmask nvidia-persistenced; systemctl start nvidia-persistenced",
    ),
}


@pytest.fixture(scope="module")
def healthy(bare_host: HostFactory) -> Host:
    host = bare_host(KIND)
    assert run_deploy("gpu_node", [host]).returncode == 0
    return host


@contextmanager
def broken(host: Host, commands: Commands) -> Iterator[None]:
    host.run(commands[0])
    try:
        yield
    finally:
        host.run(commands[1])


def judge(host: Host, folder: Path) -> tuple[int, dict[str, Any]]:
    """The exit status of the doctor, and its part of the host."""
    done = run_gpufleet("doctor", write_inventory(folder, [host]), "--json")
    return done.returncode, json.loads(done.stdout)["hosts"][host.name]


def cause_names(part: dict[str, Any]) -> set[str]:
    return {each["check"] for each in part["causes"]}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_named(healthy: Host, name: str, tmp_path: Path) -> None:
    commands, check = FAULTS[name]
    with broken(healthy, commands):
        status, part = judge(healthy, tmp_path)
    assert (cause_names(part), status > 0) == ({check}, True)


@pytest.mark.parametrize("name", SANDBOX_FAULTS)
def test_a_fault_of_the_machine_is_named(healthy: Host, name: str, tmp_path: Path) -> None:
    with healthy.fault(name):
        status, part = judge(healthy, tmp_path)
    assert (cause_names(part), status > 0) == ({SANDBOX_FAULTS[name]}, True)


@pytest.mark.parametrize("pair", PAIRS, ids=" and ".join)
def test_of_two_faults_the_causes_are_named(
    healthy: Host, pair: tuple[str, str], tmp_path: Path
) -> None:
    breaks, repairs = zip(*(FAULTS[name][0] for name in pair), strict=True)
    with broken(healthy, (" && ".join(breaks), " && ".join(repairs))):
        _, part = judge(healthy, tmp_path)
    assert cause_names(part) == PAIRS[pair]


@pytest.mark.parametrize("name", [*HEALTHY, *HEALTHY_FAULTS])
def test_a_healthy_host_passes(healthy: Host, name: str, tmp_path: Path) -> None:
    busy = name in HEALTHY_FAULTS
    with healthy.fault(name) if busy else broken(healthy, HEALTHY[name]):
        status, part = judge(healthy, tmp_path)
    assert (status, cause_names(part)) == (0, set())
