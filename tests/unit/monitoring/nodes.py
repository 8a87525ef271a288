"""Nodes made of files, for the checks of Node Problem Detector.

kmsg/ has records of /dev/kmsg as kernels with different drivers write them; the number in a file's
name is the driver's branch. The nodes have been up for 100000 seconds.
"""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

from gpufleet.monitoring.node_problems import SCRIPTS, load_node_problems, monitor_config

LOGS = Path(__file__).parent / "kmsg"
GPU, OTHER = "0000:3b:00.0", "0000:86:00.0"
NODES = ("nvidiactl", "nvidia-uvm")
RULES = {
    rule.get("condition", rule["reason"]): rule
    for rule in monitor_config(load_node_problems())["rules"]
}


@dataclass(frozen=True, slots=True)
class Node:
    """A node's file system, which the scripts read below HOST_ROOT."""

    root: Path
    shell: str = "dash"

    def write(self, path: str, text: str = "") -> Path:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    def link(self, path: str, target: str) -> None:
        link = self.root / path
        link.parent.mkdir(parents=True, exist_ok=True)
        link.unlink(missing_ok=True)
        link.symlink_to(target)

    def log(self, *names: str, uptime: float = 100_000.5) -> None:
        self.write("dev/kmsg", "".join((LOGS / f"{name}.txt").read_text() for name in names))
        self.write("proc/uptime", f"{uptime:.2f} 1234.56\n")

    def device(self, address: str, vendor: str = "0x10de", kind: str = "0x030200") -> Path:
        folder = self.root / "sys/bus/pci/devices" / address
        self.write(f"sys/bus/pci/devices/{address}/vendor", f"{vendor}\n")
        self.write(f"sys/bus/pci/devices/{address}/class", f"{kind}\n")
        (folder / "config").write_bytes(bytes.fromhex("de10b520"))
        return folder

    def gpu(self, address: str, minor: int, excluded: str = "No") -> Path:
        """A GPU that works."""
        folder = self.device(address)
        self.link(f"sys/bus/pci/devices/{address}/driver", "../../../../bus/pci/drivers/nvidia")
        self.write(
            f"proc/driver/nvidia/gpus/{address}/information",
            "Model: \t\t NVIDIA A100-SXM4-80GB\nIRQ:   \t\t 262\n"
            f"Bus Location: \t {address}\nDevice Minor: \t {minor}\n"
            f"GPU Excluded:\t {excluded}\n",
        )
        self.write(f"dev/nvidia{minor}")
        return folder

    def run(self, check: str) -> tuple[int, str]:
        """Exit code and line of a check, called with the arguments of NPD."""
        script, *arguments = RULES[check]["args"]
        command = [self.shell, str(SCRIPTS / Path(script).name), *arguments]
        env = {"HOST_ROOT": str(self.root), "PATH": "/usr/bin:/bin"}
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=10)
        assert done.stdout.count("\n") == 1, done
        assert len(done.stdout) <= 81, done.stdout
        return done.returncode, done.stdout.strip()


def sound(root: Path, shell: str = "dash") -> Node:
    """A node without faults: two GPUs with driver 535.104.05."""
    made = Node(root, shell)
    made.gpu(GPU, 0)
    made.gpu(OTHER, 1)
    made.device("0000:00:02.0", vendor="0x8086", kind="0x030000")
    made.log("boot-535", "harmless")
    for name in NODES:
        made.write(f"dev/{name}")
    version = "NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug 19 01:15:15 UTC 2023"
    made.write("proc/driver/nvidia/version", f"NVRM version: {version}\nGCC version:  gcc 11.4.0\n")
    made.link("usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1", "libnvidia-ml.so.535.104.05")
    return made
