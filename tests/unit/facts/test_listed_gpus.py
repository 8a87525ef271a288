"""The GPUs that nvidia-smi lists: its output, and its failures."""

from __future__ import annotations

from dataclasses import replace

import pytest
from fakehost import FakeHost

from gpufleet.facts.gpu import LAYOUT_FILE, Board, GpuState, Listed
from gpufleet.facts.gpu_work import gpu_work
from gpufleet.facts.model import GpuProcess, NodeFacts
from gpufleet.facts.parse import parse_node_facts
from gpufleet.facts.sections.hardware import parse_smi
from tests.unit.hosts import bare_host

NAME = "NVIDIA A100-SXM4-80GB"
GPU = "GPU {}: NVIDIA A100-SXM4-80GB (UUID: GPU-5d5ba0d6-d33d-2b2c-524d-9e3d8d2b8a7{})"
MIG = "  MIG 1g.10gb     Device  0: (UUID: MIG-c6d4f1ef-42e4-5de3-91c7-45d71c87eb3f)"
# Source: nvidia-smi(1) of 580, return values 9, 15 and 18
LOST = "Unable to determine the device handle for gpu 0000:65:00.0: GPU is lost.  Reboot the system"
MISMATCH = "Failed to initialize NVML: Driver/library version mismatch"


def gathered(host: FakeHost, shell: tuple[str, ...]) -> NodeFacts:
    return parse_node_facts(host.gather(shell))


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        ([], None),
        (["asked", GPU.format(0, 0), MIG, MIG, GPU.format(1, 1), "exit 0"],
         Listed(2, "", 2, (Board(NAME, ("1g.10gb", "1g.10gb")), Board(NAME)))),
        (["asked", GPU.format(0, 0), LOST, "exit 15"], Listed(1, LOST, boards=(Board(NAME),))),
        (["asked", MISMATCH, "NVML library version: 580.95", "exit 18"],
         Listed(0, MISMATCH)),
        (["asked", "exit 9"], Listed(0, "it ended with status 9")),
        (["asked", "exit 124"], Listed(0, "it did not answer within 60 s")),
        (["asked", GPU.format(0, 0)],
         Listed(1, "it did not answer within 60 s", boards=(Board(NAME),))),
    ],
)  # fmt: skip
def test_what_it_says(lines: list[str], found: Listed | None) -> None:
    assert parse_smi(lines) == found


STATES = [
    "state 0, 00000000:17:00.0, Enabled, Disabled, 300.00, 400.00, 100.00, 400.00, 1410, 1593, "
    "Default, Enabled, Disabled",
    "state 1, 00000000:65:00.0, [N/A], [N/A], [N/A], [N/A], [N/A], [N/A], [N/A], [N/A], "
    "[Not Supported], [N/A], [N/A]",
]


def test_the_state_of_each_gpu() -> None:
    said = ["asked", GPU.format(0, 0), MIG, GPU.format(1, 1), *STATES, "exit 0"]
    found = parse_smi(said)
    assert found
    first = GpuState(
        "0000:17:00.0", True, False, ("1g.10gb",), 300, 400, 100, 400, 1410, 1593, "Default",
        ecc=True, pending_ecc=False,
    )  # fmt: skip
    assert found.states == (first, GpuState("0000:65:00.0", None, None))
    assert (found.gpus, found.error, found.mig_manager) == (2, "", False)
    other = parse_smi([*said[:-1], "manager", "exit 0"])
    assert other == replace(found, mig_manager=True)


@pytest.mark.parametrize(
    "line", ["state ", "state 0, x", "state 99" + ", 1" * 12, "state x" + ", 1" * 12]
)
def test_a_damaged_state_is_no_error(line: str) -> None:
    found = parse_smi(["asked", GPU.format(0, 0), line, "exit 0"])
    assert found
    assert found.gpus == 1


def test_states_are_asked_for_where_a_layout_is_wanted_or_there(
    host: FakeHost, shell: tuple[str, ...]
) -> None:
    answer = STATES[0].removeprefix("state ")
    listed = GPU.format(0, 0)
    host.command("nvidia-smi", f"case $* in -L) echo '{listed}' ;; *) echo '{answer}' ;; esac")
    host.file("/sys/module/nvidia/version", "580.95.05\n")
    assert gathered(host, shell).listed == Listed(1, boards=(Board(NAME),))
    wanted = parse_node_facts(host.gather(shell, (LAYOUT_FILE,))).listed
    assert wanted
    assert [state.slot for state in wanted.states] == ["0000:17:00.0"]
    host.file(LAYOUT_FILE, "")
    assert gathered(host, shell).listed == wanted


def test_it_is_asked_where_the_module_is_loaded(host: FakeHost, shell: tuple[str, ...]) -> None:
    host.command("nvidia-smi", f"echo '{GPU.format(0, 0)}'; echo '{LOST}' >&2; exit 15")
    assert gathered(host, shell).listed is None
    host.file("/sys/module/nvidia/version", "580.95.05\n")
    assert gathered(host, shell).listed == Listed(1, LOST, boards=(Board(NAME),))


def test_another_run_that_asks_is_no_work_on_the_gpus() -> None:
    asks = GpuProcess(7, "nvidia-smi", ("/dev/nvidiactl",), "nvidia-smi -L")
    works = GpuProcess(8, "nvidia-smi", ("/dev/nvidiactl",), "nvidia-smi dmon")
    assert gpu_work(bare_host(gpu_processes=(asks, works)), ()) == [works]


def test_a_gpus_device_node_is_read_from_the_drivers_file() -> None:
    minor = "minor /proc/driver/nvidia/gpus/0000:17:00.0/information:Device Minor: \t 2"
    found = parse_smi(["asked", GPU.format(0, 1), *STATES, minor, "exit 0"])
    assert found
    assert [state.minor for state in found.states] == [2, None]
    assert not found.error
