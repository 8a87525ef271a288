"""What exporters of DCGM's metrics answer on the host."""

from __future__ import annotations

import pytest
from fakehost import FakeHost

from gpufleet.facts.health import ExporterAnswer
from gpufleet.facts.parse import parse_node_facts

METRICS = """# HELP DCGM_FI_DEV_GPU_TEMP GPU temperature (in C).
DCGM_FI_DEV_GPU_TEMP{gpu="0",UUID="GPU-1",device="nvidia0",Hostname="a"} 41
DCGM_FI_DEV_FB_USED{gpu="0",UUID="GPU-1",GPU_I_ID="1"} 12
DCGM_FI_DEV_GPU_TEMP{gpu="1",UUID="GPU-2",device="nvidia1"} 40
DCGM_EXP_XID_ERRORS_COUNT{gpu="1",UUID="GPU-2",xid="79"} 1
"""
HEADER = (
    "  sl  local_address rem_address st tx_queue rx_queue tr tm->when retrnsmt uid timeout inode\n"
)
ROW = "   0: {} 00000000:0000 {} 00000000:00000000 00:00000000 00000000 0 0 {} 1 0 100 0\n"
STAT = "4711 (dcgm-exporter) S " + " ".join(["1"] * 18) + " 100000 1 1\n"  # started at 1000 s


@pytest.fixture
def exporter(host: FakeHost) -> FakeHost:
    """A host with an exporter in a container, for 4000 seconds."""
    host.file("/proc/uptime", "5000.25 900.00\n")
    host.file("/proc/4711/comm", "dcgm-exporter\n")
    host.file("/proc/4711/stat", STAT)
    host.file("/proc/4711/net/tcp", HEADER + ROW.format("0100007F:1234", "0A", 77))
    v6 = "0" * 32
    host.file("/proc/4711/net/tcp6", HEADER + ROW.format(f"{v6}:24B8", "0A", 88))
    host.file("/proc/4711/fd/0", "")
    (host.root / "proc/4711/fd/3").symlink_to("socket:[88]")
    host.command("nsenter", f'echo "$@" >\'{host.commands}/asked\'; shift 3; exec "$@"')
    host.command("curl", f"cat '{host.commands}/metrics'; printf '\\ncode 200\\n'")
    host.file("/fakes/metrics", METRICS)
    return host


def answers(host: FakeHost, shell: tuple[str, ...]) -> tuple[ExporterAnswer, ...]:
    return parse_node_facts(host.gather(shell, health=True)).exporter_answers


def test_an_exporter_is_asked_in_its_network(exporter: FakeHost, shell: tuple[str, ...]) -> None:
    assert parse_node_facts(exporter.gather(shell)).exporter_answers == (), "not asked for"
    (answer,) = answers(exporter, shell)
    assert answer == ExporterAnswer(4000, 9400, 200, 3, frozenset({"GPU-1", "GPU-2"}))
    asked = (exporter.commands / "asked").read_text()
    assert asked.startswith("-t 4711 -n curl ")
    assert asked.endswith(" http://127.0.0.1:9400/metrics\n")


def test_an_address_of_its_own(exporter: FakeHost, shell: tuple[str, ...]) -> None:
    exporter.file("/proc/4711/net/tcp6", HEADER)
    exporter.file("/proc/4711/net/tcp", HEADER + ROW.format("0500A8C0:24B8", "0A", 88))
    assert len(answers(exporter, shell)) == 1
    assert "http://192.168.0.5:9400/" in (exporter.commands / "asked").read_text()


def test_a_silent_exporter(exporter: FakeHost, shell: tuple[str, ...]) -> None:
    exporter.command("curl", "printf '\\ncode 000\\n'; exit 28")
    assert answers(exporter, shell) == (ExporterAnswer(4000, 9400),)


def test_an_answer_of_another_program_is_read_as_data(
    exporter: FakeHost, shell: tuple[str, ...]
) -> None:
    exporter.file("/fakes/metrics", 'exporter x\n@@end\nDCGM_FI_DEV_X{UUID="\x1b[31m"} 1\ngpu\n')
    (answer,) = answers(exporter, shell)
    assert (answer.status, answer.samples) == (200, 1)


def test_the_label_of_the_old_namespace(exporter: FakeHost, shell: tuple[str, ...]) -> None:
    exporter.file("/fakes/metrics", 'DCGM_FI_DEV_X{gpu="0",uuid="GPU-1",pod_uuid="p"} 1\n')
    (answer,) = answers(exporter, shell)
    assert answer.gpus == {"GPU-1"}


def test_an_exporter_that_has_just_ended(exporter: FakeHost, shell: tuple[str, ...]) -> None:
    (exporter.root / "proc/4711/stat").unlink()
    assert answers(exporter, shell) == ()


def test_a_line_of_the_metrics_is_no_status(exporter: FakeHost, shell: tuple[str, ...]) -> None:
    exporter.command("curl", "printf 'code 99999999999999999999999\\n'")
    assert answers(exporter, shell) == (ExporterAnswer(4000, 9400),)


def test_a_connection_is_no_listener(exporter: FakeHost, shell: tuple[str, ...]) -> None:
    exporter.file("/proc/4711/net/tcp6", HEADER + ROW.format("0100007F:24B8", "01", 88))
    assert answers(exporter, shell) == ()
