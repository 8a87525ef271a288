"""The health of GPUs, from what nvidia-smi and the kernel's log say, and from any other text."""

from __future__ import annotations

import re
from dataclasses import fields, replace
from pathlib import Path

import pytest
from fakehost import FakeHost
from hypothesis import given
from hypothesis import strategies as st

from gpufleet.facts.health import GpuHealth, HostHealth, KernelEvent
from gpufleet.facts.parse import parse_node_facts
from gpufleet.facts.sections.health import SMI_SILENT, parse_health
from gpufleet.facts.sections.readings import element_names

SAMPLES = Path(__file__).parent / "health"
H100, T4 = ((SAMPLES / f"{name}.xml").read_text("utf-8") for name in ("h100-580", "t4-470"))
CLOCK = 1_796_000_000
UPTIME = 500_000
BOOT = CLOCK - UPTIME
LINKS = "GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-11111111-2222-3333-4444-555555555555)\n"
XID = "NVRM: Xid (PCI:0000:18:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."
SXID_LINE = "nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 20034, Fatal, Link 30 LTSSM Fault Up"
SXID = "nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 20034, {}, Link 30 LTSSM Fault Up"

HOT_SWITCH = (
    "nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 10004, NVSWITCH Temperature 96C | TSENSE WARN "
    "Threshold 95C"
)


def read(output: str, *after: str) -> HostHealth:
    """The health in the output of nvidia-smi, and lines that follow it."""
    return parse_health(["asked", *output.splitlines(), "exit 0", *after], CLOCK)


def only(health: HostHealth) -> GpuHealth:
    (gpu,) = health.gpus
    return gpu


def test_a_healthy_h100() -> None:
    gpu = only(read(H100))
    assert gpu.slot == "0000:18:00.0"
    assert gpu.model == "NVIDIA H100 80GB HBM3"
    assert gpu.ecc_volatile_uncorrected == 0
    assert gpu.recovery_action == "None"
    assert gpu.reset_required is None
    assert gpu.retired_pages is None
    assert (gpu.remap_pending, gpu.remap_failed, gpu.remap_banks_exhausted) == (False, False, 0)
    assert gpu.slowdowns == frozenset()
    assert (gpu.temperature, gpu.temperature_margin) == (31, 57)
    assert (gpu.power_limit, gpu.power_limit_default) == (700, 700)
    assert (gpu.pcie_generation, gpu.pcie_width) == (5, 16)
    assert (gpu.fabric_state, gpu.fabric_status) == ("Completed", "Success")
    assert (gpu.fabric_bandwidth, gpu.fabric_route_unhealthy) == ("Full", False)
    assert gpu.memory_mib == 81559


def test_a_healthy_t4_with_an_old_driver() -> None:
    gpu = only(read(T4))
    assert gpu.slot == "0000:3b:00.0"
    assert gpu.ecc_volatile_uncorrected == 0
    assert (gpu.retired_pages, gpu.retirement_pending) == (1, False)
    assert gpu.temperature_margin == 55
    assert (gpu.power_limit, gpu.pcie_generation, gpu.performance_state) == (70, 1, 8)
    assert gpu.slowdowns == frozenset()
    absent = (gpu.recovery_action, gpu.fabric_state, gpu.remap_pending, gpu.mig_mode)
    assert absent == (None, None, None, None)


def test_errors_of_memory() -> None:
    bad = H100
    for old, new in (
        ("dram_uncorrectable>0", "dram_uncorrectable>3"),
        ("secded>0", "secded>2"),
        ("pending>No", "pending>Yes"),
        ("failure>No", "failure>Yes"),
        ("exceeded>No", "exceeded>Yes"),
    ):
        bad = bad.replace(old, new)
    gpu = only(read(bad))
    assert gpu.ecc_volatile_uncorrected == 5
    assert gpu.remap_pending
    assert gpu.remap_failed
    assert gpu.sram_threshold_exceeded


@pytest.mark.parametrize("text", ["N/A", "[N/A]", "Not Supported", "Function Not Found", "ERR!",
                                  "Unknown Error", "", "\x1b[31m"])  # fmt: skip
def test_what_a_driver_does_not_know_is_not_available(text: str) -> None:
    unknown = re.sub(r">[^<\n]+</", f">{text}</", H100)
    gpu = only(read(unknown))
    known = [f.name for f in fields(gpu) if getattr(gpu, f.name) not in (None, "")]
    assert known == ["slot"] or text == "\x1b[31m"
    assert gpu.power_limit is gpu.remap_pending is gpu.ecc_volatile_corrected is None


def test_an_element_of_a_later_driver_is_ignored() -> None:
    later = H100.replace("<fabric>", "<new><state>Broken</state><fabric>x</fabric></new>\n<fabric>")
    assert read(later) == read(H100)


@pytest.mark.parametrize(
    ("line", "slot"),
    [
        ("Unable to determine the device handle for GPU0000:89:00.0: Unknown Error",
         "0000:89:00.0"),
        ("Unable to determine the device handle for GPU4: 0000:89:00.0: Unknown Error",
         "0000:89:00.0"),
        ("Unable to determine the device handle for gpu 0000:65:00.0: GPU is lost.  Reboot",
         "0000:65:00.0"),
        ("Unable to determine the device handle for GPU1: Unknown Error", ""),
    ],
)  # fmt: skip
def test_a_gpu_that_cannot_be_read(line: str, slot: str) -> None:
    health = parse_health(["asked", *H100.splitlines(), line, "exit 15"], CLOCK)
    assert health.error == line
    others = {gpu.slot: gpu.trouble for gpu in health.gpus if gpu.slot != "0000:18:00.0"}
    assert others == ({slot: line.rpartition("0.0: ")[2]} if slot else {})


def test_a_gpu_that_is_lost_in_its_readings() -> None:
    lost = re.sub(r"(uuid|gpu_temp)>[^<]+<", r"\1>GPU is lost<", H100)
    gpu = only(read(lost))
    assert (gpu.trouble, gpu.uuid, gpu.temperature) == ("GPU is lost", None, None)


@pytest.mark.parametrize(
    ("lines", "error"),
    [
        ([], None),
        (["asked"], SMI_SILENT),
        (["asked", "exit 124"], SMI_SILENT),
        (["asked", "exit 9"], "it ended with status 9"),
        (["asked", "Failed to initialize NVML: Driver/library version mismatch", "exit 18"],
         "Failed to initialize NVML: Driver/library version mismatch"),
        # it has read all GPUs
        (["asked", "WARNING: infoROM is corrupted at gpu 0000:B3:00.0", "exit 14"], ""),
        # what follows is of its links, and of the kernel's log
        (["asked", "exit 15", "Link 3: Replay Errors: 4"], "it ended with status 15"),
        (["asked", "exit 15", f"line {XID} error"], "it ended with status 15"),
        (["asked", "exit 0"], ""),
    ],
)  # fmt: skip
def test_why_nvidia_smi_fails(lines: list[str], error: str | None) -> None:
    assert parse_health(lines, CLOCK).error == error


def test_links_of_a_gpu() -> None:
    up = "".join(f"\t Link {i}: 26.562 GB/s\n" for i in range(17)) + "\t Link 17: <inactive>\n"
    errors = (
        "\t Link 2: Replay Errors: 4\n\t Link 2: CRC Errors: 1\n\t Link 3: Recovery Errors: 2\n"
    )
    before = only(read(H100))
    after = only(read(H100, *f"{LINKS}{up}{LINKS}{errors}".splitlines()))
    assert after == replace(before, nvlinks_active=17, nvlinks_inactive=1, nvlink_recoveries=2)
    unread = only(read(H100, *f"{LINKS}{up}".splitlines()))
    assert (unread.nvlinks_active, unread.nvlink_recoveries) == (17, None)
    assert only(read(H100, *LINKS.splitlines())) == before


ALL_DOWN = "NVML: Unable to retrieve NVLink information as all links are inActive"
A100 = H100.replace("H100 80GB HBM3", "A100-SXM4-80GB").replace("<state>Completed", "<state>N/A")


@pytest.mark.parametrize(
    ("output", "down", "active"),
    [
        (H100, ALL_DOWN, 0),
        (H100, "\t Unable to retrieve Nvlink information as all links are inActive", 0),
        (A100, ALL_DOWN, 0),
        # NVLink is off with MIG on this model
        (A100.replace("<current_mig>Disabled", "<current_mig>Enabled"), ALL_DOWN, None),
        # one without a bridge, which others of the host may have
        (A100.replace("A100-SXM4-80GB", "RTX A6000"), ALL_DOWN, None),
    ],
)
def test_a_gpu_whose_links_are_all_down(output: str, down: str, active: int | None) -> None:
    gpu = only(read(output, *f"{LINKS}{down}\n{LINKS}{down}".splitlines()))
    assert (gpu.nvlinks_active, gpu.nvlinks_inactive, gpu.nvlink_recoveries) == (active, None, None)


@pytest.mark.parametrize(
    ("line", "event"),
    [
        (f"[480000.123456] {XID}",
         KernelEvent("xid", 79, "0000:18:00.0", BOOT + 480_000, XID.partition("79, ")[2])),
        (f"[  12.3][ T1234] {XID}",
         KernelEvent("xid", 79, "0000:18:00.0", BOOT + 12, XID.partition("79, ")[2])),
        (f"[480000.123456] gpu-07 kernel: {XID}",
         KernelEvent("xid", 79, "0000:18:00.0", BOOT + 480_000, XID.partition("79, ")[2])),
        (XID, KernelEvent("xid", 79, "0000:18:00.0", None, XID.partition("79, ")[2])),
        ("[9.0] NVRM: Xid (PCI:0000:01:00 GPU-I:05): 94, pid=7194, Contained: CE User Channel",
         KernelEvent("xid", 94, "0000:01:00.0", BOOT + 9, "pid=7194, Contained: CE User Channel")),
        ("[9.0] NVRM: Xid (PCI:0000:3b:00 GPU-I:01 GPU-CI:02): 13, pid=9, name=a, Exception",
         KernelEvent("xid", 13, "0000:3b:00.0", BOOT + 9, "pid=9, name=a, Exception")),
        ("[9.0] NVRM: Xid (0000:03:00): 14, Channel 00000001",
         KernelEvent("xid", 14, "0000:03:00.0", BOOT + 9, "Channel 00000001")),
        (f"[9.0] {SXID.format('Fatal')}",
         KernelEvent("sxid", 20034, "0000:c1:00.0", BOOT + 9, "Fatal, Link 30 LTSSM Fault Up",
                     fatal=True)),
        (f"[9.0] {SXID.format('Non-fatal')}",
         KernelEvent("sxid", 20034, "0000:c1:00.0", BOOT + 9, "Non-fatal, Link 30 LTSSM Fault Up",
                     fatal=False)),
        (f"[9.0] {SXID.format('Severity 0 Engine instance 30')}", None),
        (f"[9.0] {SXID.format('Data {0x00000001, 0x00000002}')}", None),
        (f"[9.0] {SXID.format('Correctable')}", None),
        (f"[9.0] {HOT_SWITCH}",
         KernelEvent("sxid", 10004, "0000:c1:00.0", BOOT + 9, "NVSWITCH Temperature 96C | TSENSE "
                     "WARN Threshold 95C", fatal=False)),
        ("[9.0] NVRM: Xid (PCI:x): y", None),
    ],
)  # fmt: skip
def test_events_of_the_kernel(line: str, event: KernelEvent | None) -> None:
    found = parse_health([f"uptime {UPTIME}.17 1234.5", "since 3", f"line {line}"], CLOCK)
    assert found.events == ((event,) if event else ())


@pytest.mark.parametrize(
    ("lines", "since", "complete"),
    [
        ([f"uptime {UPTIME}.17 1.0", "since 0"], BOOT, True),
        ([f"uptime {UPTIME}.17 1.0", "since 86400"], BOOT + 86_400, False),
        ([f"uptime {UPTIME}.17 1.0"], None, False),
        (["since 5"], None, True),
    ],
)
def test_since_when_the_log_reaches(lines: list[str], since: int | None, complete: bool) -> None:
    health = parse_health(lines, CLOCK)
    assert (health.log_since, health.log_complete) == (since, complete)


WORDS = st.sampled_from(
    ["asked", "exit", "uptime", "since", "line", "<gpu id=", "</gpu>", '"0000:18:00.0">', "<a>",
     "</a>", XID, SXID, LINKS, "Link 1: 5 GB/s", "Link 2: CRC Errors: 9", "9" * 400, "-", "\x1b",
     "<ecc_errors>", "<volatile>", "<dram_correctable>1e999</dram_correctable>", "٣"]
)  # fmt: skip


@given(st.lists(st.lists(WORDS | st.text(max_size=20), max_size=4).map(" ".join), max_size=12))
def test_any_text_is_read(lines: list[str]) -> None:
    assert isinstance(parse_health(lines, CLOCK), HostHealth)


@pytest.fixture
def gpu_host(host: FakeHost) -> FakeHost:
    host.file("/sys/module/nvidia/version", "580.95.05\n")
    host.file("/proc/uptime", f"{UPTIME}.25 900.00\n")
    host.file("/fakes/smi.xml", H100)
    host.command(
        "nvidia-smi",
        f"case $* in '-q -x') cat {host.commands}/smi.xml ;;"
        f" 'nvlink -s') printf '{LINKS}\\t Link 0: 26.562 GB/s\\n' ;;"
        f" 'nvlink -e') printf '{LINKS}\\t Link 0: CRC Errors: 0\\n' ;; esac",
    )
    host.says("dmesg", f"[    0.000000] Linux version\n[480000.5] {XID}\n")
    return host


def test_it_is_read_only_on_request(gpu_host: FakeHost, shell: tuple[str, ...]) -> None:
    assert parse_node_facts(gpu_host.gather(shell)).health is None
    lines = gpu_host.gather(shell, health=True)
    assert not any("example-value" in line for line in lines), "the command line of a user"
    health = parse_node_facts(lines).health
    assert health is not None
    assert health.error == ""
    expected = replace(only(read(H100)), nvlinks_active=1, nvlinks_inactive=0, nvlink_recoveries=0)
    assert health.gpus == (expected,)
    assert [event.code for event in health.events] == [79]
    assert health.log_complete


MIG = """<current_mig>Enabled</current_mig>
			<pending_mig>Enabled</pending_mig>
		</mig_mode>
		<mig_devices>
			<mig_device>
				<index>0</index>
				<gpu_instance_id>7</gpu_instance_id>
				<ecc_error_count>
					<volatile_count>
						<sram_uncorrectable>9</sram_uncorrectable>
					</volatile_count>
				</ecc_error_count>
				<fb_memory_usage>
					<total>9728 MiB</total>
				</fb_memory_usage>
			</mig_device>
		</mig_devices>
"""


def test_a_mig_device_is_not_the_gpu(gpu_host: FakeHost, shell: tuple[str, ...]) -> None:
    start, end = H100.index("<current_mig>"), H100.index("		<serial>")
    gpu_host.file("/fakes/smi.xml", H100[:start] + MIG + H100[end:])
    health = parse_node_facts(gpu_host.gather(shell, health=True)).health
    assert health is not None
    gpu = only(health)
    assert (gpu.mig_mode, gpu.memory_mib, gpu.ecc_volatile_uncorrected) == ("Enabled", 81559, 0)


def test_errors_of_mig_devices_count_where_the_gpu_counts_none(
    gpu_host: FakeHost, shell: tuple[str, ...]
) -> None:
    start, end = H100.index("<current_mig>"), H100.index("		<serial>")
    device = MIG[MIG.index("			<mig_device>") : MIG.index("		</mig_devices>")]
    none = re.sub(r"(<[sd]ram_\w+>)\d+<", r"\1N/A<", H100[end:], count=6)
    gpu_host.file("/fakes/smi.xml", H100[:start] + MIG.replace(device, device * 2) + none)
    health = parse_node_facts(gpu_host.gather(shell, health=True)).health
    assert health is not None
    assert only(health).ecc_volatile_uncorrected == 18


def test_the_journal_is_read_where_the_buffer_was_overwritten(
    gpu_host: FakeHost, shell: tuple[str, ...]
) -> None:
    gpu_host.says("dmesg", "[490000.000000] veth0: link becomes ready\n")
    gpu_host.says(
        "journalctl", f"[    1.000000] gpu-07 kernel: Linux\n[480000.5] gpu-07 kernel: {XID}\n"
    )
    health = parse_node_facts(gpu_host.gather(shell, health=True)).health
    assert health is not None
    assert [event.code for event in health.events] == [79]
    assert health.log_complete
    gpu_host.says("journalctl", "")
    health = parse_node_facts(gpu_host.gather(shell, health=True)).health
    assert health is not None
    assert not health.events
    assert not health.log_complete
    assert health.log_since is not None


def test_the_newest_events_are_kept(gpu_host: FakeHost, shell: tuple[str, ...]) -> None:
    lines = (f"[ {n}.0] {XID.replace('79', str(n), 1)}\n" for n in range(1, 301))
    gpu_host.says("dmesg", "".join(lines))
    health = parse_node_facts(gpu_host.gather(shell, health=True)).health
    assert health is not None
    assert [event.code for event in health.events] == list(range(101, 301))


def test_details_of_harmless_errors_push_no_event_out(
    gpu_host: FakeHost, shell: tuple[str, ...]
) -> None:
    harmless = (
        SXID.format(text) for text in ("Data {0x0000002b, 0x0000002b}", "Severity 0 Engine")
    )
    lines = f"[ 1.0] {XID}\n" + "".join(f"[ 2.0] {line}\n" for line in harmless) * 150
    gpu_host.says("dmesg", lines)
    health = parse_node_facts(gpu_host.gather(shell, health=True)).health
    assert health is not None
    assert [event.code for event in health.events] == [79]


def test_errors_before_the_driver_was_loaded_again_are_past(
    gpu_host: FakeHost, shell: tuple[str, ...]
) -> None:
    loads = "NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  580.95.05"
    gpu_host.says("dmesg", f"[ 1.0] {loads}\n[ 2.0] {XID}\n[ 9.0] {loads}\n[ 9.5] {SXID_LINE}\n")
    health = parse_node_facts(gpu_host.gather(shell, health=True)).health
    assert health is not None
    assert [event.code for event in health.events] == [20034]


def test_an_error_while_the_driver_was_loaded_is_not_past(
    gpu_host: FakeHost, shell: tuple[str, ...]
) -> None:
    """The driver starts NVSwitches before it says that it was loaded."""
    starts = "nvidia-nvlink: Nvlink Core is being initialized, major device number 236"
    loads = "NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  580.95.05"
    gpu_host.says(
        "dmesg",
        f"[ 1.0] {starts}\n[ 1.5] {loads}\n[ 2.0] {XID}\n"
        f"[ 9.0] {starts}\n[ 9.5] {SXID_LINE}\n[ 9.9] {loads}\n",
    )
    health = parse_node_facts(gpu_host.gather(shell, health=True)).health
    assert health is not None
    assert [event.code for event in health.events] == [20034]


def test_the_driver_of_the_operator_is_asked(gpu_host: FakeHost, shell: tuple[str, ...]) -> None:
    (gpu_host.commands / "nvidia-smi").rename(gpu_host.commands / "chroot-smi")
    gpu_host.file("/run/nvidia/driver/usr/bin/nvidia-smi", "", 0o755)
    gpu_host.command("chroot", f'shift 2; exec {gpu_host.commands}/chroot-smi "$@"')
    health = parse_node_facts(gpu_host.gather(shell, health=True)).health
    assert health is not None
    assert only(health).model == "NVIDIA H100 80GB HBM3"


def test_a_damaged_inforom_is_in_the_call_without_options(
    gpu_host: FakeHost, shell: tuple[str, ...]
) -> None:
    """Its table is not sent: it has the names of programs."""
    (gpu_host.commands / "nvidia-smi").rename(gpu_host.commands / "other-smi")
    warning = "WARNING: infoROM is corrupted at gpu 0000:18:00.0"
    gpu_host.command(
        "nvidia-smi",
        f'[ "$1" ] && exec {gpu_host.commands}/other-smi "$@"\n'
        f"echo '|  0  N/A  4711  C  python3 train.py |'; echo '{warning}'; exit 14",
    )
    lines = gpu_host.gather(shell, health=True)
    assert not any("train.py" in line for line in lines)
    health = parse_node_facts(lines).health
    assert health is not None
    assert (health.error, only(health).inforom_corrupted) == ("", True)
    assert only(health).model == "NVIDIA H100 80GB HBM3"


def test_names_of_elements_are_words() -> None:
    assert re.fullmatch(r"[A-Za-z_|]+", element_names())
