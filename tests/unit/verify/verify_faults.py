"""Faults of a host, and the one check that must find each."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

from fake_host import (
    DRIVER,
    KERNEL,
    LIBRARY,
    VERSION,
    FakeHost,
    cdi_spec,
    dpkg,
    units,
)

from gpufleet.verify.probe import Output

OLD = "550.163.01"
Fault = Callable[[FakeHost], None]


def sets(name: str, text: str, status: int = 0) -> Fault:
    return lambda fake_host: fake_host.set(name, text, status)


def replaces(name: str, old: str, new: str) -> Fault:
    def fault(fake_host: FakeHost) -> None:
        section = (fake_host.runtimes if name in fake_host.runtimes else fake_host.sections)[name]
        assert old in section.text
        fake_host.set(name, section.text.replace(old, new), section.status)

    return fault


def both(*faults: Fault) -> Fault:
    def fault(fake_host: FakeHost) -> None:
        for each in faults:
            each(fake_host)

    return fault


def service(unit: str, key: str, value: str) -> Fault:
    """A fault: a property of a unit has another value."""

    def fault(fake_host: FakeHost) -> None:
        before, rest = fake_host.sections["services"].text.split(f"Id={unit}.service\n")
        block, gap, after = rest.partition("\n\n")
        assert f"{key}=" in block
        block = re.sub(f"^{key}=.*$", f"{key}={value}", block, flags=re.MULTILINE)
        fake_host.set("services", f"{before}Id={unit}.service\n{block}{gap}{after}")

    return fault


MIG_LINE = "  MIG {}     Device  0: (UUID: MIG-c6d4f1ef-42e4-5de3-91c7-45d71c87eb3f)\n"
STATES = (
    "0, 00000000:17:00.0, Enabled, Enabled, 300.00, 400.00, Default, Enabled\n"
    "1, 00000000:2A:00.0, Disabled, Disabled, 400.00, 400.00, Default, Enabled"
)


def divided(fake_host: FakeHost) -> None:
    """The first GPU has two MIG devices, as recorded."""
    fake_host.provenance["gpu"] = {
        "gpus": {"0000:17:00.0": "mig=2g.20gb,1g.10gb power=300", "0000:2a:00.0": "mig=off ecc=1"}
    }
    parts = MIG_LINE.format("2g.20gb") + MIG_LINE.format("1g.10gb")
    replaces("smi-list", "GPU 1", f"{parts}GPU 1")(fake_host)
    fake_host.set("gpu-state", STATES)
    unit = units(gpufleet_gpus="active,enabled")
    fake_host.set("services", f"{fake_host.sections['services'].text}\n{unit}")
    fake_host.set("cdi:/etc/cdi/nvidia.yaml", cdi_spec(VERSION, 0, ("0:0", "0:1", "1")))


def no_provenance(fake_host: FakeHost) -> None:
    fake_host.sections["provenance"] = Output(1, "cat: No such file or directory")


def other_driver(fake_host: FakeHost) -> None:
    """Only the toolkit was recorded, so no file of a driver was written."""
    del fake_host.provenance["driver"], fake_host.provenance["files"]


def wanted(**data: object) -> Fault:
    return lambda fake_host: fake_host.data.update(data)


def docker_stopped(fake_host: FakeHost) -> None:
    text = units(docker="failed,enabled", containerd="active,enabled")
    fake_host.runtimes["runtime-services"] = Output(0, text)
    fake_host.set("docker-info", "", 1)


def container(output: Output) -> Fault:
    return lambda fake_host: fake_host.containers.update({("docker", ""): output})


def daemon(text: str) -> Fault:
    return both(sets("docker-config", text), sets("docker-validate", "invalid character", 1))


def no_switch_manager(fake_host: FakeHost) -> None:
    replaces("pci", "0000:17", "0000:05:00.0 0x068000\n0000:17")(fake_host)
    replaces("dpkg", "bash\t", dpkg("nvidia-fabricmanager", f"{VERSION}-1") + "\nbash\t")(fake_host)


def old_fabric_manager(fake_host: FakeHost) -> None:
    no_switch_manager(fake_host)
    replaces("dpkg", f"nvidia-fabricmanager\t{VERSION}", f"nvidia-fabricmanager\t{OLD}")(fake_host)
    fake_host.provenance["driver"]["packages"]["nvidia-fabricmanager"] = f"{OLD}-1"
    replaces(
        "services",
        units(nvidia_fabricmanager="absent"),
        units(nvidia_fabricmanager="active,enabled"),
    )(fake_host)


FAULTS: dict[str, tuple[Fault, dict[str, str]]] = {
    "healthy": (lambda fake_host: None, {}),
    "no record": (no_provenance, {"provenance": "GF711"}),
    "record of another schema": (
        lambda p: p.provenance.update(schema=2),
        {"provenance": "GF711"},
    ),
    "another branch wanted": (wanted(driver_branch="550"), {"as_wanted": "GF712"}),
    "another version wanted": (wanted(driver_version="580.1.2"), {"as_wanted": "GF712"}),
    "half configured": (
        replaces("dpkg", "bash\t5.2.15-2+b7\tamd64\tinstall ok installed",
                 "bash\t5.2.15-2+b7\tamd64\tinstall ok half-configured"),
        {"package_manager": "GF713"},
    ),
    "dpkg interrupted": (
        sets("dpkg-audit", "The following packages have only been unpacked"),
        {"package_manager": "GF713"},
    ),
    "package upgraded": (
        replaces("dpkg", f"nvidia-utils-580\t{VERSION}", "nvidia-utils-580\t580.105.08"),
        {"driver_packages": "GF720"},
    ),
    "package gone": (
        replaces("dpkg", "nvidia-utils-580\t", "other\t"),
        {"driver_packages": "GF720"},
    ),
    "stray package": (
        replaces("dpkg", "bash\t", dpkg("libnvidia-cfg1-550", f"{OLD}-0ubuntu1") + "\nbash\t"),
        {"one_version": "GF721"},
    ),
    "hold lost": (
        replaces("dpkg", dpkg(DRIVER[0], f"{VERSION}-0ubuntu1"),
                 dpkg(DRIVER[0], f"{VERSION}-0ubuntu1", "install ok installed")),
        {"driver_held": "GF720"},
    ),
    "unattended": (
        sets("unattended", "Unattended-Upgrade::Package-Blacklist:: nvidia-"),
        {"unattended_upgrades": "GF723"},
    ),
    "old module loaded": (
        both(sets("loaded-version", OLD), sets("library", LIBRARY.replace(VERSION, OLD)),
             sets("smi-version", OLD), sets("cdi:/etc/cdi/nvidia.yaml", cdi_spec(OLD, 2))),
        {"module_loaded": "GF730"},
    ),
    "module not loaded": (
        both(sets("loaded-version", "", 1), sets("modules", ""), sets("device-nodes", ""),
             sets("smi-version", "couldn't communicate", 9), sets("smi-list", "", 9),
             service("nvidia-persistenced", "ActiveState", "failed")),
        {"module_loaded": "GF730"},
    ),
    "library of another version": (
        both(sets("library", LIBRARY.replace(VERSION, OLD)),
             sets("smi-version", "Driver/library version mismatch", 18), sets("smi-list", "", 18)),
        {"library": "GF730"},
    ),
    "module file gone": (
        sets("module-file", "modinfo: ERROR: Module nvidia not found.", 1),
        {"module_file": "GF732"},
    ),
    "module file of another version": (
        replaces("module-file", VERSION, OLD),
        {"module_file": "GF732"},
    ),
    "proprietary module": (
        replaces("module-file", "Dual MIT/GPL", "NVIDIA"),
        {"flavour": "GF733"},
    ),
    "dkms failed": (
        both(sets("dkms", f"nvidia/{VERSION}: added"), sets("module-file", "not found", 1),
             sets("loaded-version", "", 1), sets("modules", "")),
        {"dkms": "GF734"},
    ),
    "dkms for another kernel": (
        replaces("dkms", KERNEL, "6.1.0-41-amd64"),
        {"dkms": "GF734"},
    ),
    "nouveau": (
        sets("modules", "nouveau\nnvidia"),
        {"no_nouveau": "GF735"},
    ),
    "nouveau has the GPU": (
        both(sets("modules", "nouveau"), sets("loaded-version", "", 1)),
        {"no_nouveau": "GF735"},
    ),
    "no blacklist": (
        both(sets("blacklist", "pcspkr"), sets("initramfs", "blacklists nouveau:\n")),
        {"blacklist": "GF736"},
    ),
    "nova without blacklist": (
        sets("nova-on-disk", "/lib/modules/nova_core.ko"),
        {"blacklist": "GF736"},
    ),
    "initramfs not rebuilt": (
        replaces("initramfs", "etc/modprobe.d/gpufleet-nouveau.conf\nb",
                 "lib/modules/x/nouveau.ko\nb"),
        {"initramfs": "GF737"},
    ),
    "device node gone": (
        replaces("device-nodes", "/dev/nvidia1\n", ""),
        {"device_nodes": "GF740"},
    ),
    "GPU lost": (
        replaces("smi-list", "GPU 1: NVIDIA T4 (UUID: GPU-2)", ""),
        {"gpu_count": "GF741"},
    ),
    "one GPU off the bus": (
        both(replaces("pci", "0000:2a:00.0 0x030200", ""), replaces("smi-list", "GPU 1", "-")),
        {"gpu_count": "GF741"},
    ),
    "MIG as recorded": (divided, {}),
    "MIG devices lost": (
        both(divided, replaces("smi-list", MIG_LINE.format("1g.10gb"), "")),
        {"gpu_layout": "GF722"},
    ),
    "MIG on, no instances": (
        both(divided, replaces("gpu-state", "Disabled, Disabled", "Enabled, Enabled")),
        {"gpu_layout": "GF722"},
    ),
    "MIG mode waits": (
        both(divided, replaces("gpu-state", "Enabled, Enabled, 300", "Enabled, Disabled, 300")),
        {"gpu_layout": "GF722"},
    ),
    "GPUs without a state": (
        both(divided, sets("gpu-state", "x\x1b[2J", 9)),
        {"gpu_layout": "GF722", "gpu_limits": "GF731"},
    ),
    "power limit lost": (
        both(divided, replaces("gpu-state", "300.00", "400.00")),
        {"gpu_limits": "GF731"},
    ),
    "ECC off": (
        both(divided, replaces("gpu-state", "400.00, Default, Enabled", "400.00, Default, [N/A]")),
        {"gpu_limits": "GF731"},
    ),
    "layout unit failed": (
        both(divided, service("gpufleet-gpus", "ActiveState", "failed")),
        {"gpu_unit": "GF750"},
    ),
    "CDI spec without MIG devices": (
        both(divided, sets("cdi:/etc/cdi/nvidia.yaml", cdi_spec(VERSION, 2))),
        {"cdi_spec": "GF780"},
    ),
    "all GPUs off the bus": (sets("pci", ""), {"gpu_count": "GF741"}),
    "no persistence": (
        service("nvidia-persistenced", "ActiveState", "inactive"),
        {"persistence_daemon": "GF750"},
    ),
    "persistence not enabled": (
        service("nvidia-persistenced", "UnitFileState", "disabled"),
        {"persistence_daemon": "GF750"},
    ),
    "fabric manager without a switch": (
        replaces("services", units(nvidia_fabricmanager="absent"),
                 units(nvidia_fabricmanager="failed,enabled")),
        {},
    ),
    "no fabric manager": (no_switch_manager, {"fabric_manager": "GF750"}),
    "old fabric manager": (old_fabric_manager, {"fabric_manager_version": "GF720"}),
    "toolkit upgraded": (
        replaces("dpkg", "libnvidia-container1\t1.20.0", "libnvidia-container1\t1.20.1"),
        {"toolkit_packages": "GF720"},
    ),
    "other toolkit wanted": (wanted(toolkit_version="1.18.0"), {"toolkit_packages": "GF720"}),
    "other nvidia-ctk": (replaces("nvidia-ctk", "1.20.0", "1.17.8"), {"toolkit_binary": "GF761"}),
    "program of the toolkit not executable": (
        replaces("toolkit-programs", "runs /usr/bin/nvidia-container-cli",
                 "not-executable /usr/bin/nvidia-container-cli"),
        {"toolkit_programs": "GF761"},
    ),
    "no toolkit recorded": (
        lambda p: p.provenance.pop("toolkit"), {"toolkit_packages": "GF720"},
    ),
    "no driver recorded": (
        lambda p: p.provenance.pop("driver"), {"as_wanted": "GF712"},
    ),
    "a driver of another source that works is kept": (other_driver, {}),
    "a driver of another source, another branch wanted": (
        both(other_driver, wanted(driver_branch="550")), {"as_wanted": "GF712"},
    ),
    "no record on a host that wants only the toolkit": (
        both(no_provenance, wanted(driver_enabled=False)), {"provenance": "GF711"},
    ),
    "no record on a host that wants nothing": (
        both(no_provenance, wanted(driver_enabled=False, toolkit_enabled=False)), {},
    ),
    "no toolkit where none is wanted": (
        both(lambda p: p.provenance.pop("toolkit"), wanted(toolkit_enabled=False)), {},
    ),
    "null in docker's configuration where runtimes were": (
        sets("docker-config", json.dumps(
            {"registry-mirrors": [], "features": {"buildkit": True}, "runtimes": None})),
        {"runtime_ours[docker]": "GF772"},
    ),
    "toolkit not held": (
        replaces("dpkg", dpkg("libnvidia-container1", "1.20.0-1"),
                 dpkg("libnvidia-container1", "1.20.0-1", "install ok installed")),
        {"toolkit_held": "GF720"},
    ),
    "docker stopped": (docker_stopped, {"runtime_up[docker]": "GF750"}),
    "daemon.json broken": (daemon('{"runtimes": {'), {"runtime_valid[docker]": "GF771"}),
    "our runtime gone": (
        sets("docker-config", json.dumps({"registry-mirrors": [], "features": {"buildkit": 1}})),
        {"runtime_ours[docker]": "GF772"},
    ),
    "no binary": (
        lambda p: p.commands.update({"command -v nvidia-container-runtime": Output(1, "")}),
        {"runtime_ours[docker]": "GF772"},
    ),
    "not the default": (
        lambda p: p.provenance["toolkit"]["runtimes"]["containerd"].update(default=True),
        {"runtime_ours[containerd]": "GF772"},
    ),
    "user's key gone": (
        replaces("docker-config", '"buildkit": true', '"cdi": true'),
        {"runtime_user_keys[docker]": "GF773"},
    ),
    "docker not restarted": (
        replaces("docker-info", "nvidia", "x"),
        {"runtime_knows[docker]": "GF774"},
    ),
    "containerd not restarted": (
        sets("containerd-started", "999"),
        {"runtime_knows[containerd]": "GF774"},
    ),
    "CRI plugin disabled": (
        replaces("containerd-dump", "version = 2", 'version = 2\ndisabled_plugins = ["cri"]'),
        {"runtime_knows[containerd]": "GF774"},
    ),
    "CRI plugin not loaded": (
        replaces("containerd-plugins", "cri        linux/amd64    ok",
                 "cri        linux/amd64    error"),
        {"runtime_cri": "GF764"},
    ),
    "containerd without a CRI plugin": (
        sets("containerd-plugins", "TYPE ID PLATFORMS STATUS"),
        {"runtime_cri": "GF764"},
    ),
    "no runc in PATH": (
        sets("low-level-runtime", "no runtime binary found from candidate list: [runc crun]", 1),
        {"runtime_base[docker]": "GF765", "runtime_base[containerd]": "GF765"},
    ),
    "CDI spec stale": (sets("cdi:/etc/cdi/nvidia.yaml", cdi_spec(OLD, 2)), {"cdi_spec": "GF780"}),
    "CDI spec short": (
        sets("cdi:/etc/cdi/nvidia.yaml", cdi_spec(VERSION, 1)),
        {"cdi_spec": "GF780"},
    ),
    "second CDI spec stale": (
        sets("cdi:/var/run/cdi/x.yaml", cdi_spec(OLD, 2)),
        {"cdi_spec": "GF780"},
    ),
    "container blind": (
        container(Output(0, "null zero")),
        {"container_sees_gpus[docker]": "GF781"},
    ),
    "container fails": (container(Output(125, "boom")), {"container_sees_gpus[docker]": "GF781"}),
}  # fmt: skip
