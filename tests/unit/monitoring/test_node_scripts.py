"""The checks of Node Problem Detector: the shipped scripts, run by sh on nodes made of files."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.selection import some
from tests.unit.monitoring.nodes import GPU, OTHER, RULES, Node, sound

FINE, PROBLEM, UNKNOWN = 0, 1, 2
SHELLS = some([shell for shell in ("dash", "bash") if shutil.which(shell)], ["dash"])
XIDS = ("GpuNeedsReset", "GpuNeedsReplacement", "GpuXidApplication", "GpuXidDriver",
        "GpuXidHardware", "GpuXidUnclassified")  # fmt: skip


@pytest.fixture(params=SHELLS)
def node(tmp_path: Path, request: pytest.FixtureRequest) -> Node:
    """A node without faults."""
    return sound(tmp_path, request.param)


@pytest.mark.parametrize("check", RULES)
def test_a_sound_node_has_no_problem(node: Node, check: str) -> None:
    code, line = node.run(check)
    assert code == FINE, line


@pytest.mark.parametrize(
    ("logs", "hit", "line"),
    [
        (["boot-535", "xid-31-470"], {"GpuXidApplication"}, "Xid 43 on PCI:0000:3b:00, pid=41822"),
        (["xid-13-304"], {"GpuXidApplication"}, "Xid 13 on 0000:02:00, 0005 00000000"),
        (["boot-535", "xid-79-535"], set(), ""),  # the check of the bus reports that fault
        (
            ["boot-open-580", "xid-95-mig-550"],
            {"GpuNeedsReset", "GpuXidHardware"},
            "Xid 95 on PCI:0000:86:00",
        ),
        (["boot-535", "xid-64-570"], {"GpuNeedsReplacement"}, "Xid 64 on PCI:0000:86:00"),
        (
            ["boot-open-580", "xid-119-580"],
            {"GpuXidDriver", "GpuXidUnclassified"},
            "Xid 119 on PCI:0000:86:00",
        ),
        (["boot-open-580", "xid-149-590"], {"GpuXidHardware"}, "Xid 149 on PCI:0019:01:00"),
        (["boot-535", "harmless"], set(), ""),
        (["xid-64-570", "xid-31-470", "boot-535"], set(), ""),  # before the driver was loaded
    ],
)
def test_an_xid_is_reported_by_its_class(
    node: Node, logs: list[str], hit: set[str], line: str
) -> None:
    node.log(*logs)
    answers = {check: node.run(check) for check in XIDS}
    assert {check for check, (code, _) in answers.items() if code == PROBLEM} == hit, answers
    assert {code for code, _ in answers.values()} <= {FINE, PROBLEM}
    assert not hit or any(said.startswith(line) for _, said in answers.values()), answers


def test_an_xid_expires_and_an_event_is_reported_once(node: Node) -> None:
    node.log("boot-535", "xid-64-570", "xid-31-470", uptime=99_990 + 59)
    assert [node.run(check)[0] for check in ("GpuNeedsReplacement", "GpuXidApplication")] == [1, 1]
    node.log("boot-535", "xid-64-570", "xid-31-470", uptime=99_990 + 61)
    assert [node.run(check)[0] for check in ("GpuNeedsReplacement", "GpuXidApplication")] == [1, 0]
    node.log("boot-535", "xid-64-570", uptime=99_990 + 3601)
    assert node.run("GpuNeedsReplacement")[0] == FINE


@pytest.mark.parametrize("log", ["xid-79-535", "lost-510"])
def test_a_gpu_that_the_driver_lost_fell_off_the_bus(node: Node, log: str) -> None:
    node.log("boot-535", log)
    code, line = node.run("GpuFellOffBus")
    assert (code, "fallen off the bus" in line) == (PROBLEM, True)


def test_a_gpu_that_does_not_answer_fell_off_the_bus_whatever_the_log_says(node: Node) -> None:
    folder = node.gpu(GPU, 0)
    (folder / "config").write_bytes(b"\xff" * 64)
    assert node.run("GpuFellOffBus") == (PROBLEM, f"{GPU} does not answer on the bus")
    (folder / "config").write_bytes(bytes.fromhex("de10b520"))
    audio = node.device("0000:3b:00.1", kind="0x040300")
    (audio / "config").write_bytes(b"\xff" * 64)
    assert node.run("GpuFellOffBus")[0] == FINE


@pytest.mark.parametrize("check", ["GpuFellOffBus", *XIDS])
def test_a_log_that_cannot_be_read_is_not_fine(node: Node, check: str) -> None:
    (node.root / "dev/kmsg").unlink()
    assert node.run(check) == (UNKNOWN, "the kernel's log cannot be read")


OPEN = "NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build  (dvs-builder@U22)"


@pytest.mark.parametrize(
    ("module", "links", "code", "line"),
    [
        (OPEN, {"usr/lib64": "580.65.06"}, FINE, "module and library are 580.65.06"),
        (
            OPEN,
            {"usr/lib64": "580.95.05"},
            PROBLEM,
            "module 580.65.06 is loaded, the library is 580.95.05",
        ),
        (  # the driver's container counts, whatever the node has left
            OPEN,
            {"run/nvidia/driver/usr/lib/x86_64-linux-gnu": "580.65.06", "usr/lib64": "535.104.05"},
            FINE,
            "module and library are 580.65.06",
        ),
        (
            OPEN,
            {},
            UNKNOWN,
            "module 580.65.06 is loaded, and no library of NVIDIA's was found",
        ),
        (None, {"usr/lib64": "580.65.06"}, UNKNOWN, "no module of NVIDIA's is loaded"),
    ],
)
def test_module_and_library_are_compared(
    node: Node, module: str | None, links: dict[str, str], code: int, line: str
) -> None:
    (node.root / "usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1").unlink()
    about = node.root / "proc/driver/nvidia/version"
    if module is None:
        about.unlink()
    else:
        about.write_text(f"NVRM version: {module}\nGCC version:  gcc 13\n")
    for folder, version in links.items():
        node.link(f"{folder}/libnvidia-ml.so.1", f"libnvidia-ml.so.{version}")
    assert node.run("GpuDriverMismatch") == (code, line)


def test_a_library_that_an_upgrade_left_behind_is_harmless(node: Node) -> None:
    node.write("usr/lib/x86_64-linux-gnu/libnvidia-ml.so.525.60.13")
    assert node.run("GpuDriverMismatch")[0] == FINE


def test_each_missing_device_node_is_reported(node: Node) -> None:
    for name, line in {
        "nvidia1": f"GPU {OTHER}: /dev/nvidia1 is missing",
        "nvidiactl": "/dev/nvidiactl is missing",
        "nvidia-uvm": "/dev/nvidia-uvm is missing",
    }.items():
        (node.root / "dev" / name).unlink()
        assert node.run("GpuDeviceMissing") == (PROBLEM, line)
        node.write(f"dev/{name}")


def test_a_gpu_without_its_driver_is_reported(node: Node) -> None:
    (node.root / f"sys/bus/pci/devices/{GPU}/driver").unlink()
    assert node.run("GpuDeviceMissing") == (PROBLEM, f"GPU {GPU} has no driver")
    node.gpu(GPU, 0)
    (node.root / f"proc/driver/nvidia/gpus/{OTHER}/information").unlink()
    assert node.run("GpuDeviceMissing") == (PROBLEM, f"the driver did not take GPU {OTHER}")


@pytest.mark.parametrize("why", ["passed on", "excluded", "virtual function"])
def test_a_gpu_that_is_not_for_containers_is_harmless(node: Node, why: str) -> None:
    (node.root / "dev/nvidia1").unlink()
    assert node.run("GpuDeviceMissing")[0] == PROBLEM
    if why == "passed on":
        node.link(f"sys/bus/pci/devices/{OTHER}/driver", "../../../../bus/pci/drivers/vfio-pci")
    elif why == "excluded":
        node.gpu(OTHER, 1, excluded="Yes")
        (node.root / "dev/nvidia1").unlink()
    else:
        node.link(f"sys/bus/pci/devices/{OTHER}/physfn", f"../{GPU}")
    assert node.run("GpuDeviceMissing")[0] == FINE


def test_a_node_without_gpus_is_fine(node: Node) -> None:
    shutil.rmtree(node.root / "sys/bus/pci/devices")
    assert node.run("GpuDeviceMissing") == (FINE, "no GPU for NVIDIA's driver")
