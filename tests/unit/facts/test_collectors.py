"""Collectors of metrics and listeners: the facts script on a host of files, and its parser."""

from __future__ import annotations

import pytest
from fakehost import FakeHost

from gpufleet.facts.model import Daemon, Listener, NodeFacts
from gpufleet.facts.parse import parse_node_facts
from gpufleet.facts.script import gather_command
from gpufleet.facts.sections.collectors import parse_collectors
from gpufleet.node.catalog import load_catalog

HEAD = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt uid inode\n"
CONTAINER = "0123456789abcdef" * 4
POD = f"/kubepods.slice/kubepods-burstable.slice/cri-containerd-{CONTAINER}.scope"


def facts(host: FakeHost, shell: tuple[str, ...], *ports: int) -> NodeFacts:
    return parse_node_facts(host.gather(shell, ports=ports))


def process(host: FakeHost, pid: int, command: str, cgroup: str, *links: str) -> None:
    """A process with these open files, in a control group of version 2."""
    host.file(f"/proc/{pid}/comm", command + "\n")
    host.file(f"/proc/{pid}/cgroup", f"0::{cgroup}\n")
    host.file(f"/proc/{pid}/maps", "7f00-7f01 r--p 0 08:01 1 /usr/lib/libc.so.6\n")
    for number, target in enumerate(links):
        host.link(f"/proc/{pid}/fd/{number}", target)


def row(number: int, address: str, state: str, inode: int) -> str:
    return f"   {number}: {address} 00000000:0000 {state} 0:0 00:0 0 0 0 {inode} 1 0\n"


def sockets(host: FakeHost, *rows: str, file: str = "tcp") -> None:
    host.file(f"/proc/net/{file}", HEAD + "".join(rows))


def test_nobody_collects(host: FakeHost, shell: tuple[str, ...]) -> None:
    process(host, 12, "sshd", "/system.slice/ssh.service", "/dev/null")
    found = facts(host, shell, 9400)
    assert (found.collectors, found.listeners) == ((), ())


def test_collectors_by_name_wherever_they_run(host: FakeHost, shell: tuple[str, ...]) -> None:
    process(host, 812, "nv-hostengine", "/system.slice/nvidia-dcgm.service")
    process(host, 97, "dcgm-exporter", POD)
    process(host, 98, "my-dcgm-exporte", "/user.slice")
    found = facts(host, shell).collectors
    assert found == (
        Daemon(97, "dcgm-exporter", POD),
        Daemon(812, "nv-hostengine", "/system.slice/nvidia-dcgm.service"),
    )
    assert (found[0].in_pod, found[0].container, found[0].unit) == (True, CONTAINER, "")
    assert (found[1].in_pod, found[1].container, found[1].unit) == (
        False, "", "nvidia-dcgm.service",
    )  # fmt: skip


def test_a_renamed_exporter_is_known_by_its_library(host: FakeHost, shell: tuple[str, ...]) -> None:
    host.device("/dev/nvidiactl")
    process(host, 300, "gpu telemetry", "/docker/" + CONTAINER, "/dev/nvidia0", "/dev/nvidiactl")
    host.file("/proc/300/maps", "7f00-7f01 r-xp 0 08:01 9 /usr/lib/x86_64-linux-gnu/libdcgm.so.4\n")
    process(host, 301, "starship", POD, "/dev/nvidia0")
    process(host, 302, "python3", "/user.slice", "/dev/nvidia0", "/dev/nvidia-uvm")
    process(host, 303, "starship", "/user.slice/prompt")
    found = facts(host, shell)
    assert [daemon.pid for daemon in found.collectors] == [300, 301]
    assert found.collectors[0].command == "gpu telemetry"
    assert [process.pid for process in found.gpu_processes] == [300, 301, 302]


def test_control_groups_of_the_first_version(host: FakeHost, shell: tuple[str, ...]) -> None:
    process(host, 812, "nv-hostengine", "")
    host.file(
        "/proc/812/cgroup",
        "9:devices:/x\n1:name=systemd:/system.slice/nvidia-dcgm.service\n0::/other\n",
    )
    assert facts(host, shell).collectors[0].unit == "nvidia-dcgm.service"


def test_a_host_that_is_a_container_itself(host: FakeHost, shell: tuple[str, ...]) -> None:
    outer = f"/machine/libpod-{CONTAINER}"
    process(host, 1, "systemd", f"{outer}/init.scope")
    process(host, 812, "nv-hostengine", f"{outer}/system.slice/nvidia-dcgm.service")
    process(host, 813, "dcgm-exporter", "/docker/" + "ab" * 32)
    engine, exporter = facts(host, shell).collectors
    assert (engine.unit, engine.container) == ("nvidia-dcgm.service", "")
    assert exporter.container == "ab" * 32


def test_who_listens_on_the_ports_in_question(host: FakeHost, shell: tuple[str, ...]) -> None:
    sockets(
        host,
        row(0, "0100007F:24B8", "0A", 700),
        row(1, "00000000:0016", "0A", 701),
        row(2, "0100007F:24B9", "01", 702),
        row(3, "00000000:24B9", "0A", 703),
    )
    sockets(host, row(0, "00000000000000000000000001000000:4BC8", "0A", 704), file="tcp6")
    process(host, 44, "nginx: worker", "/system.slice/nginx.service", "socket:[700]", "socket:[9]")
    process(host, 45, "python3", "/user.slice", "socket:[7041]")
    found = facts(host, shell, 9400, 9401, 19400)
    nginx = Daemon(44, "nginx: worker", "/system.slice/nginx.service")
    assert found.listeners == (Listener("127.0.0.1", 9400, nginx), Listener("::1", 19400, None))
    assert found.collectors == ()
    assert facts(host, shell).listeners == ()


def test_our_own_container_is_no_work_of_anybodys(host: FakeHost, shell: tuple[str, ...]) -> None:
    host.file("/usr/bin/dockerd", "", 0o755)
    host.command("dockerd", "")
    for container in (CONTAINER, "aa"):
        host.file(f"/run/containerd/io.containerd.runtime.v2.task/moby/{container}/init.pid", "")
    assert facts(host, shell).runtimes["docker"].containers == 2
    host.file("/run/gpufleet-dcgm-exporter.cid", CONTAINER)
    assert facts(host, shell).runtimes["docker"].containers == 1
    host.file("/run/gpufleet-dcgm-exporter.cid", "bb")
    assert facts(host, shell).runtimes["docker"].containers == 2


@pytest.mark.parametrize("line", ["listen 0100007F", "owner x 1", "cgroup 3 /x", "nonsense 1 2"])
def test_a_malformed_line_is_an_error(line: str) -> None:
    with pytest.raises((ValueError, LookupError)):
        parse_collectors([line])


def test_the_script_asks_for_every_collector_of_the_catalog() -> None:
    script = gather_command()
    for collector in load_catalog().exporter.collectors:
        assert collector.command in script
