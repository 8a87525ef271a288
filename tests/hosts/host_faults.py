"""Faults of a host with two A100, docker and containerd: the check of the doctor that names each,
pairs of them, and healthy states."""

from __future__ import annotations

from typing import Any

from containers import IMAGE, WITH_GPUS
from host_breaks import (
    FIRST,
    PCI,
    SECOND,
    SWITCH,
    Commands,
    changed,
    failing_unit,
    on_a_node,
    program,
    sxid,
    two_xids,
    xid,
)

SPEC, CONFIG = "/var/run/cdi/nvidia.yaml", "/etc/containerd/config.toml"
RECORD, SMI = "/var/lib/gpufleet/provenance.json", "/usr/bin/nvidia-smi"
DAEMON, UPGRADE = "/etc/docker/daemon.json", "/var/lib/gpufleet/upgrade.json"
OLD = "s/libnvidia-ml[.]so[.][0-9.]*/libnvidia-ml.so.470.1/"  # the library of another driver
LIBRARY = "/usr/lib/x86_64-linux-gnu/libnvidia-ml.so"
LOADED = "$(cat /sys/module/nvidia/version)"
UNLOAD = "systemctl stop nvidia-persistenced; modprobe -r nvidia_uvm nvidia"
LOAD = "modprobe nvidia; modprobe nvidia_uvm; systemctl start nvidia-persistenced"
SOURCE = "nvidia/$(ls /usr/src | sed -n 's/^nvidia-\\([0-9]\\)/\\1/p')"
BUILD = f"dkms install {SOURCE} -k $(uname -r)"
UNBUILD = f"{UNLOAD}; name={SOURCE}; dkms remove $name -k $(uname -r) && dkms add $name"
HEADERS = "/lib/modules/$(uname -r)/build"
NOUVEAU = "/usr/lib/sim/kernels/extra/$(uname -r)/nouveau.ko"
SECURE = "/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"
LOST = '[plugins."io.containerd.grpc.v1.cri".containerd]\\ndefault_runtime_name = "lost"\\n'
RESTART_DOCKER = "systemctl reset-failed docker; systemctl restart docker"
# One of each class and each resolution of the driver's errors; 999 is none that is known.
XIDS = {
    "XID 48": ("48, pid=1, name=python, DBE detected on GPU", "gpu.xid_reset"),
    "XID 54": ("54, pid=1, Auxiliary power is not connected", "gpu.xid_mechanics"),
    "XID 60": ("60, pid=1, Video processor exception", "gpu.xid_hardware"),
    "XID 62": ("62, pid=1, 2b4d3", "gpu.xid_reset"),
    "XID 64": ("64, pid=1, Row Remapper: failed", "gpu.xid_reset"),
    "XID 66": ("66, pid=1, Illegal access by driver", "gpu.xid_hardware"),
    "XID 74": ("74, pid=1, NVLink: fatal error on link 6", "gpu.xid_nvlink"),
    "XID 78": ("78, vGPU Start Error", "gpu.xid_hardware"),
    "XID 79": ("79, GPU has fallen off the bus.", "gpu.xid_reboot"),
    "XID 92": ("92, High single-bit ECC error rate", "gpu.xid_hardware"),
    "XID 94": ("94, pid=1, Contained: LTC", "gpu.xid_hardware"),
    "XID 119": ("119, pid=1, Timeout after 6s of waiting for RPC response", "gpu.xid_reset"),
    "XID 142": ("142, NVENC3 Error", "gpu.xid_support"),
    "XID 145": ("145, NVLink RLW_CTRL", "gpu.xid_nvlink"),
    "XID 149 that is fatal": ("149, NETIR_LINK_EVT Fatal XC0 i0 Link 08", "gpu.xid_reset"),
    "XID 151": ("151, Key rotation Error", "gpu.xid_reboot"),
    "XID 154, reset": (
        "154, GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)",
        "gpu.recovery_reset",
    ),
    "XID 154, reboot": (
        "154, GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)",
        "gpu.recovery_reboot",
    ),
    "XID 154, drain": (
        "154, GPU recovery action changed from 0x0 (None) to 0x3 (Drain P2P)",
        "gpu.recovery_drain",
    ),
    "XID 157": ("157, Row Remapper: a row needs remapping", "gpu.xid_hardware"),
    "XID 163": ("163, pid=1, an error without a remedy", "gpu.xid_support"),
    "XID 999": ("999, pid=1, something new", "gpu.xid_unknown"),
}
SXIDS = {
    "SXid 10004": ("10004, Non-fatal, Link 00 thermal event", "host.sxid_hardware"),
    "SXid 11001": ("11001, Fatal, Link 32 ingress invalid command", "host.sxid_reset"),
    "SXid 11004": ("11004, Non-fatal, Link 32 ingress invalid ACL", "host.sxid_hardware"),
    "SXid 12020": ("12020, Fatal, Link 32 egress sequence ID error", "host.sxid_reboot"),
    "SXid 20012": ("20012, Non-fatal, Link 32 LTSSM Fault Up", "host.sxid_hardware"),
    "SXid 99999": ("99999, Fatal, Link 32 something new", "host.sxid_reset"),
}
FAULTS: dict[str, tuple[Commands, str]] = {
    **{name: (xid(text), check) for name, (text, check) in XIDS.items()},
    **{name: (sxid(text), check) for name, (text, check) in SXIDS.items()},
    # the driver and its GPUs
    "module is not loaded": ((UNLOAD, LOAD), "chain.loaded"),
    "DKMS failed": (
        (
            f"{UNBUILD} && touch /etc/sim/fail/dkms && ! {BUILD}",
            f"rm /etc/sim/fail/dkms; {BUILD}; {LOAD}",
        ),
        "chain.build",
    ),
    "kernel headers are missing": (
        (f"{UNBUILD} && mv {HEADERS} /root/build", f"mv /root/build {HEADERS}; {BUILD}; {LOAD}"),
        "chain.headers",
    ),
    "Secure Boot rejects the module": (
        (
            f"{UNLOAD}; echo 1 >/run/sim/secure-boot && printf '\\6\\0\\0\\0\\1' >{SECURE}",
            f"echo 0 >/run/sim/secure-boot; printf '\\6\\0\\0\\0\\0' >{SECURE}; {LOAD}",
        ),
        "chain.signature",
    ),
    "nouveau has the GPUs": (
        (f"{UNLOAD}; modprobe drm && insmod {NOUVEAU}", f"rmmod nouveau; {LOAD}"), "chain.nouveau"
    ),
    "library of another driver": (
        (
            f"mv {LIBRARY}.{LOADED} {LIBRARY}.550.163.01 && ldconfig",
            f"mv {LIBRARY}.550.163.01 {LIBRARY}.{LOADED} && ldconfig",
        ),
        "chain.version",
    ),
    "library of NVML is missing": (
        (f"mv {LIBRARY}.1 /root/nvml", f"mv /root/nvml {LIBRARY}.1"), "chain.nvml"
    ),
    "a GPU has no driver": (
        (f"rm {PCI}/{FIRST}.0/driver", f"ln -s ../../drivers/nvidia {PCI}/{FIRST}.0/driver"),
        "chain.bound",
    ),
    "a GPU reads as all ones": (
        (f"echo 63 >{PCI}/{FIRST}.0/current_link_width", f"rm {PCI}/{FIRST}.0/current_link_width"),
        "chain.gpus",
    ),
    "device nodes are missing": (
        (
            f"rm /dev/nvidiactl && {program(SMI, 'echo Unknown Error; exit 255')[0]}",
            f"mknod -m 666 /dev/nvidiactl c 1 3; {program(SMI, '')[1]}",
        ),
        "chain.nodes",
    ),
    "nvidia-smi hangs": (program(SMI, "sleep 600"), "chain.nvml"),
    "nvidia-smi fails": (
        program(SMI, "echo Failed to initialize NVML: Unknown Error; exit 255"), "chain.nvml"
    ),
    "persistence daemon is stopped": (
        ("systemctl stop nvidia-persistenced", "systemctl start nvidia-persistenced"),
        "chain.persistence",
    ),
    "no fabric manager": (
        (
            f"cp -r {PCI}/{FIRST}.0 {PCI}/{SWITCH}.0 && rm {PCI}/{SWITCH}.0/driver && "
            f"echo 0x068000 >{PCI}/{SWITCH}.0/class",
            f"rm -r {PCI}/{SWITCH}.0",
        ),
        "chain.fabric",
    ),
    "ECC was switched": (
        ("nvidia-smi -i 0 -e 0", "nvidia-smi -i 0 -e 1"), "gpu.ecc_pending"
    ),
    "MIG was switched": (
        (
            "touch /etc/sim/fail/gpu-reset && nvidia-smi -i 0 -mig 1",
            "nvidia-smi -i 0 -mig 0; rm /etc/sim/fail/gpu-reset",
        ),
        "gpu.mig_pending",
    ),
    "a GPU has less power": (
        ("nvidia-smi -i 0 -pl 200", "nvidia-smi -i 0 -pl 400"), "gpu.power_limit"
    ),
    # from the toolkit to the exporter
    "toolkit was removed": (
        (
            "dpkg --remove --force-all nvidia-container-toolkit nvidia-container-toolkit-base",
            "apt-get install -y nvidia-container-toolkit nvidia-container-toolkit-base",
        ),
        "chain.toolkit",
    ),
    "invalid config.toml": (changed(CONFIG, f"echo 'version = = 3' >{CONFIG}"), "chain.config"),
    "invalid daemon.json": (changed(DAEMON, f"echo '{{' >{DAEMON}"), "chain.config"),
    "docker's default runtime is not defined": (
        changed(DAEMON, f"echo '{{\"default-runtime\": \"lost\"}}' >{DAEMON}"),
        "chain.default_runtime",
    ),
    "containerd's default runtime is not defined": (
        changed(CONFIG, f"printf 'version = 2\\n{LOST}' >{CONFIG}"), "chain.default_runtime"
    ),
    "docker has not read its file": (
        (
            f"mv {DAEMON} /root/daemon && {RESTART_DOCKER}; mv /root/daemon {DAEMON}",
            RESTART_DOCKER,
        ),
        "chain.effect",
    ),
    "docker does not answer": (
        ("kill -STOP $(cat /run/docker.pid)", "kill -CONT $(cat /run/docker.pid)"),
        "chain.runtime",
    ),
    "docker is stopped": (
        ("systemctl stop docker.socket docker", "systemctl start docker.socket docker"),
        "chain.runtime",
    ),
    "containerd is stopped": (
        ("systemctl stop containerd", "systemctl start containerd"), "chain.runtime"
    ),
    "containerd of a node is masked": (
        on_a_node(
            (
                "systemctl mask --now containerd",
                "systemctl unmask containerd; systemctl start containerd",
            )
        ),
        "chain.runtime",
    ),
    "CDI of another driver": (changed(SPEC, f"sed -i '{OLD}' {SPEC}"), "chain.cdi"),
    "no CDI": (changed(SPEC, f"rm {SPEC}"), "chain.cdi"),
    "two CDI specifications": (
        (f"mkdir /etc/cdi; sed '{OLD}' {SPEC} >/etc/cdi/nvidia.yaml", "rm -r /etc/cdi"),
        "chain.cdi",
    ),
    "kubelet failed": (failing_unit("kubelet.service"), "chain.kubelet"),
    "kubelet is stopped": (
        on_a_node(("systemctl stop kubelet", "true")), "chain.kubelet"
    ),
    "exporter failed": (failing_unit("nvidia-dcgm-exporter.service"), "chain.exporter"),
    # beside the chain
    "damaged record": (changed(RECORD, f"echo '{{' >{RECORD}"), "host.plan"),
    "an upgrade has not ended": ((f"echo '{{' >{UPGRADE}", f"rm {UPGRADE}"), "host.upgrade"),
}  # fmt: skip
SANDBOX_FAULTS = {
    "gpu-lost": "chain.gpus",
    "dpkg-interrupted": "host.packages",
    "clock-skew": "host.clock",
    "disk-full": "host.disk",
}
# what the inventory says -> the check that names it
DATA: dict[str, tuple[dict[str, Any], str]] = {
    "unknown key": ({"driver_brunch": "580"}, "host.plan"),
    "unknown driver": ({"driver_branch": "999"}, "host.plan"),
    "version of another branch": ({"driver_version": "570.86.15"}, "host.plan"),
    "more GPUs": ({"node_gpus": 3}, "chain.gpus"),
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
    ("DKMS failed", "exporter failed"): {"chain.build"},
    ("kernel headers are missing", "CDI of another driver"): {"chain.headers"},
    ("library of another driver", "persistence daemon is stopped"): {"chain.version"},
    ("docker is stopped", "XID 74"): {"chain.runtime", "gpu.xid_nvlink"},
    ("an upgrade has not ended", "no CDI"): {"host.upgrade", "chain.cdi"},
    ("ECC was switched", "XID 92"): {"gpu.ecc_pending", "gpu.xid_hardware"},
    ("invalid daemon.json", "docker is stopped"): {"chain.config"},
    ("no fabric manager", "SXid 12020"): {"host.sxid_reboot"},
}
# two XIDs at once, each with its GPU
XID_PAIRS: dict[str, tuple[Commands, set[str]]] = {
    "of one GPU": (
        two_xids(f"{FIRST}): 79, GPU has fallen off the bus.", f"{FIRST}): 94, Contained"),
        {"gpu.xid_reboot"},
    ),
    "of two GPUs": (
        two_xids(f"{FIRST}): 48, DBE", f"{SECOND}): 94, Contained"),
        {"gpu.xid_reset", "gpu.xid_hardware"},
    ),
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
    "a container uses the GPUs": (
        f"docker run -d --name train --network none {WITH_GPUS} {IMAGE} sleep 3600",
        "docker rm -f train",
    ),
}
