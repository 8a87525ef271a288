"""Ways to break a sandbox host, each as two commands of the shell: one breaks, and one repairs."""

from __future__ import annotations

from pathlib import Path

PCI, FIRST, SECOND, SWITCH = "/run/sim/pci", "0000:17:00", "0000:65:00", "0000:05:00"
KUBELET, KUBELET_UNIT = "/usr/local/bin/kubelet", "/etc/systemd/system/kubelet.service"
LOADING = "NVRM: loading NVIDIA UNIX x86_64 Kernel Module"
Commands = tuple[str, str]  # breaks the host, and repairs it


def changed(path: str, how: str, after: str = "") -> Commands:
    """A file that a command changes. `after`: follows the change, and the repair."""
    kept, then = f"/root/{Path(path).name}.kept", f" && {after}" if after else ""
    return f"cp -a {path} {kept} && {how}{then}", f"mv {kept} {path}{then}"


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


def on_a_node(commands: Commands, options: str = "") -> Commands:
    """A fault of a node of Kubernetes: the host has a kubelet, which only waits."""
    say = '[ "$1" = --version ] && echo Kubernetes v1.30.0 && exit'
    unit = f"[Service]\\nExecStart={KUBELET} {options}\\n[Install]\\nWantedBy=multi-user.target\\n"
    start = (
        f"printf '#!/bin/sh\\n{say}\\nsleep infinity\\n' >{KUBELET} && chmod +x {KUBELET} && "
        f"printf '{unit}' >{KUBELET_UNIT} && systemctl daemon-reload && "
        "systemctl enable --now kubelet"
    )
    stop = f"systemctl disable --now kubelet; rm {KUBELET} {KUBELET_UNIT}; systemctl daemon-reload"
    return f"{start} && {commands[0]}", f"{commands[1]}; {stop}"


def xid(text: str) -> Commands:
    """An XID of the host's first GPU in the kernel's log."""
    return log(f"NVRM: Xid (PCI:{FIRST}): {text}"), log(LOADING)


def sxid(text: str) -> Commands:
    """An SXid of an NVSwitch in the kernel's log."""
    return log(f"nvidia-nvswitch0: SXid (PCI:{SWITCH}.0): {text}"), log(LOADING)


def log(line: str) -> str:
    """A kernel log of one line, in a file instead of the machine's log."""
    time = "$(cut -d. -f1 /proc/uptime)"
    return f"rm -f /dev/kmsg; printf '4,1,%s000000,-;{line}\\n' {time} >/dev/kmsg"


def two_xids(first: str, second: str) -> Commands:
    """Two XIDs, each with its GPU: dmesg reads one line of a file only."""
    lines = (f'echo "[{n}.0] NVRM: Xid (PCI:{each}"' for n, each in enumerate((first, second), 1))
    return program("/usr/bin/dmesg", "; ".join(lines))
