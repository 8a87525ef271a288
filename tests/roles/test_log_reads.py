"""The last line of a transaction's log, read on the host in parallel, only to show progress."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gevent
import pyinfra
import pytest
from gevent.event import Event
from pyinfra.api import Config, Host, Inventory, State
from pyinfra.api.state import StateStage

from gpufleet.core.secrets import register_secret
from gpufleet.host.asking import OUTPUT_MARK
from gpufleet.host.operation import Commands, host_operation
from gpufleet.host.shell import quote_command, script_command
from gpufleet.packages.operations.transaction import READ_TIMEOUT, log_progress
from gpufleet.run import display as displays
from gpufleet.run import last_line
from gpufleet.run.display import Display
from gpufleet.run.last_line import LastLine
from gpufleet.run.reporting import RunReport
from tests.roles.answers import framed_lines

DPKG, YUM, DNF = "log/dpkg.log", "log/yum.log", "log/dnf.rpm.log"
MAKE = "lib/dkms/nvidia/580.95.05/build/make.log"
COMPILES = b"  CC [M]  /var/lib/dkms/nvidia/580.95.05/build/nvidia/nv-pci.o\n"


def command_line(root: Path, shell: str = "sh", seconds: int = 60) -> list[str]:
    """The script in a shell, with its files below `root`."""
    text = script_command("packages/last_line", str(seconds)).get_raw_value()
    text = text.replace("/var/log/", f"{root}/log/").replace("/var/lib/", f"{root}/lib/")
    return ["sh", "-c", text.replace("sh -c", f"exec {shell} -c", 1)]


def read(root: Path, shell: str = "sh", seconds: int = 60) -> str:
    done = subprocess.run(
        command_line(root, shell, seconds), capture_output=True, check=True, timeout=900
    )
    assert done.stderr == b""
    return done.stdout.decode("ascii")


def write(root: Path, name: str, text: bytes, age: float = 0.0) -> None:
    file = root / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(text.replace(b"/var/", f"{root}/".encode()))
    at = time.time() - age
    os.utime(file, (at, at))


@pytest.mark.parametrize("shell", ["dash", "bash"])
@pytest.mark.parametrize(
    ("name", "text", "line"),
    [
        (DPKG, b"2026-11-25 14:18:09 status unpacked libnvidia-gl-580:amd64 580.95.05-1\n",
         "unpacked libnvidia-gl-580:amd64 580.95.05-1"),
        (DPKG, b"2026-11-25 14:18:09 trigproc initramfs-tools:all 0.142 <none>\n",
         "trigproc initramfs-tools:all 0.142 <none>"),
        (YUM, b"Nov  5 14:18:09 Installed: kmod-nvidia-latest-dkms-550.163.01\n",
         "Installed: kmod-nvidia-latest-dkms-550.163.01"),
        (DNF, b"2026-11-25T14:18:09+0000 SUBDEBUG Installed: dkms-3.2.1-1.el9.noarch\n",
         "Installed: dkms-3.2.1-1.el9.noarch"),
        (MAKE, b"make[1]: Entering directory\n" + COMPILES, "CC [M]  nvidia/nv-pci.o"),
        (MAKE, b"A\n 10 %\r 20 %\r 30 %\r", "30 %"),
        (MAKE, b"B\n\xff\x1b[31mred\x1b]0;t\x07\xe2\x80\xae\n\n \n", "[31mred]0;t"),
        (MAKE, b"cc " + b"x" * 10_000_000 + b"\n", ""),
        (MAKE, b"x" * 9000 + b"\nCC a\npassword=is-not-whol", "CC a"),
        (MAKE, b"x" * 8191 + b"\n", ""),
        (MAKE, b"x" * 8190 + b"\n", "x" * 8190),
        (MAKE, b"\xff" * 8185 + b"\nCC b\n", "CC b"),
        (MAKE, b"", ""),
    ],
)  # fmt: skip
def test_the_last_line_of_each_log(
    tmp_path: Path, shell: str, name: str, text: bytes, line: str
) -> None:
    write(tmp_path, name, text)
    assert "".join(read(tmp_path, shell).splitlines()[-1:]) == line


@pytest.mark.parametrize("shell", ["dash", "bash"])
def test_the_log_that_was_written_last_counts_if_it_is_of_this_transaction(
    tmp_path: Path, shell: str
) -> None:
    assert read(tmp_path, shell) == ""
    write(tmp_path, DPKG, b"2026-11-25 14:18:09 status installed dkms:all 3.0\n", age=10)
    write(tmp_path, "elsewhere", b"secret\n")
    (tmp_path / YUM).symlink_to(tmp_path / "elsewhere")
    os.mkfifo(tmp_path / DNF)
    write(tmp_path, MAKE, COMPILES, age=90)
    assert read(tmp_path, shell) == "installed dkms:all 3.0\n"
    assert read(tmp_path, shell, seconds=5) == ""
    write(tmp_path, MAKE, COMPILES, age=2)
    assert read(tmp_path, shell, seconds=5) == "CC [M]  nvidia/nv-pci.o\n"


@pytest.mark.parametrize("shell", ["dash", "bash"])
def test_it_leaves_the_host_as_it_is_and_ends_without_a_reader(tmp_path: Path, shell: str) -> None:
    write(tmp_path, MAKE, COMPILES, age=2)

    def all_there() -> dict[str, int]:
        return {str(path): path.lstat().st_mtime_ns for path in [tmp_path, *tmp_path.rglob("*")]}

    before = all_there()
    reader, writer = os.pipe()
    os.close(reader)
    child = subprocess.Popen(
        command_line(tmp_path, shell), stdout=writer, stderr=subprocess.DEVNULL, cwd=tmp_path
    )
    os.close(writer)
    child.wait(20)
    assert all_there() == before


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(last_line, "LAST_LINE_INTERVAL", 0.0)


@pytest.fixture
def state() -> State:
    hosts: list[tuple[str, dict[str, Any]]] = [(f"@fake/{name}", {}) for name in "abcd"]
    found = State(Inventory((hosts, {}), {}), Config(), check_for_changes=False)
    found.set_stage(StateStage.Execute)
    return found


@pytest.fixture
def host(state: State) -> Host:
    return state.inventory.get_host("@fake/a")


def test_a_line_is_short_and_visible(host: Host) -> None:
    assert LastLine(host, str).text == ""
    line = text_of(host, "get https://mirror/\x1b" + "x" * 1000)
    assert line.startswith(r"get https://mirror/\x1bxxx")
    assert len(line) < 2 * last_line.MAX_LAST_LINE_CHARS


def text_of(host: Host, read: str) -> str:
    """The text shown for a read."""
    line = LastLine(host, lambda: read)
    reading = line.refresh()
    assert reading is not None
    reading.join()
    return line.text


SECRET = "Hunter2Plant"


@pytest.mark.parametrize(
    "line", ["W" * wide + f" https://fleet:{SECRET}@mirror/cuda/" for wide in (70, 80, 100, 115)]
)
def test_a_secret_at_an_edge_is_not_shown(tmp_path: Path, host: Host, line: str) -> None:
    register_secret(SECRET)
    write(tmp_path, MAKE, f"begins\n{line}\n".encode())
    assert SECRET[:6] not in text_of(host, read(tmp_path))
    assert SECRET[:6] not in text_of(host, line + "x" * 10**6)
    assert SECRET[:6] not in text_of(host, "x" * 10**6 + line)
    write(tmp_path, MAKE, b"begins\nget https://mir")  # an unfinished line
    assert text_of(host, read(tmp_path)) == "begins"


def test_a_read_that_hangs_is_not_repeated_and_holds_up_nothing(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(last_line, "LAST_LINE_TIMEOUT", 0.05)
    answers, began = Event(), []

    def hangs() -> str:
        began.append(1)
        answers.wait()
        return "Installed: dkms"

    line = LastLine(host, hangs)
    with line.shown():
        assert LastLine.of(host) is line
        reading = line.refresh()
        assert reading is not None
        gevent.sleep(0)
        assert line.refresh() is reading
    assert LastLine.of(host) is None
    assert (began, line.text) == ([1], "")
    answers.set()
    reading.join()
    assert line.text == "Installed: dkms"


def test_hung_reads_of_a_host_do_not_use_up_its_sessions(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(last_line, "LAST_LINE_TIMEOUT", 0.05)
    never, began = Event(), []

    def hangs() -> str:
        began.append(1)
        never.wait()
        return ""

    for _ in range(10):
        with LastLine(host, hangs).shown():
            if line := LastLine.of(host):
                line.refresh()
                gevent.sleep(0)
    assert len(began) == 1


@pytest.mark.parametrize("has_timeout", [True, False])
def test_a_read_is_limited_where_the_host_has_a_program_for_that(
    tmp_path: Path, has_timeout: bool
) -> None:
    for name in ("sh", "sleep", *(["timeout"] if has_timeout else [])):
        program = shutil.which(name)
        assert program
        (tmp_path / name).symlink_to(program)
    limited = READ_TIMEOUT.replace("timeout 2", "timeout 0.1")
    done = subprocess.run(
        ["sh", "-c", f"{limited} sh -c 'sleep 0.5; echo $1' name word"],
        env={"PATH": str(tmp_path)}, capture_output=True, text=True,
    )  # fmt: skip
    assert (done.stdout, done.stderr) == ("" if has_timeout else "word\n", "")


def test_the_session_of_a_read_is_free_before_the_next_command(host: Host) -> None:
    def slow() -> str:
        gevent.sleep(0.01)
        return "Installed: dkms"

    line = LastLine(host, slow)
    with line.shown():
        reading = line.refresh()
    assert reading is not None
    assert reading.ready()


def test_a_read_waits_for_its_time(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(last_line, "LAST_LINE_INTERVAL", 60.0)
    assert LastLine(host, lambda: "early").refresh() is None


def test_nothing_more_is_read_of_a_host_that_refuses(
    host: Host, capsys: pytest.CaptureFixture[str]
) -> None:
    def refused() -> str:
        raise OSError("no more sessions")

    with LastLine(host, refused).shown():
        line = LastLine.of(host)
        assert line
        reading = line.refresh()
        assert reading is not None
        reading.join()
        assert LastLine.of(host) is None
    with LastLine(host, lambda: "again").shown():
        assert LastLine.of(host) is None
    assert "Traceback" not in capsys.readouterr().err


@host_operation
def transact(word: str) -> Commands:
    """
    Send one command with its log.

    + word: the command
    """
    yield from log_progress(quote_command(word))


@pytest.mark.parametrize("word", ["true", "false"])
def test_the_command_is_sent_as_it_is_and_its_log_ends_with_it(
    carry_out: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, word: str
) -> None:
    seen: list[LastLine | None] = []

    def deploy() -> None:
        host = pyinfra.state.inventory.get_host("@fake/host")
        execute = host.connector.run_shell_command

        def noticing(*args: Any, **how: Any) -> Any:
            seen.append(LastLine.of(host))
            return execute(*args, **how)

        monkeypatch.setattr(host.connector, "run_shell_command", noticing)
        transact("Run it", word)

    ran = carry_out(deploy, {"false": {"success": False}})
    assert ran.failed is (word == "false")
    assert ran.commands == [word]
    (line,) = seen
    assert line
    assert LastLine.of(ran._host) is None


def test_it_is_asked_without_sudo_and_read_from_between_the_marks(carry_out: Any) -> None:
    line: list[LastLine | None] = []

    def deploy() -> None:
        host = pyinfra.state.inventory.get_host("@fake/host")
        host.connector_data["sudo_askpass_path__/tmp"] = "/askpass"
        for _ in log_progress(quote_command("true")):
            line.append(LastLine.of(host))

    answers = {"make.log": framed_lines("Installed: dkms")}
    ran = carry_out(deploy, answers, _sudo=True, _sudo_password="Xyzzy-7")
    (found,) = line
    assert found
    reading = found.refresh()
    assert reading is not None
    reading.join()
    assert found.text == "Installed: dkms"
    (asked,) = ran.commands
    assert "last_line" in asked
    assert asked.count(OUTPUT_MARK) == 2
    assert "sudo" not in asked


def at_work(display: Display, host: Host, seconds: float, line: LastLine) -> None:
    """Let a host carry out a step for so long already."""
    host.executing_op_hash = "op"
    display._run.began[host.name] = time.monotonic() - seconds
    host.connector_data[last_line._LINE] = line


def test_only_the_longest_steps_of_hosts_are_read(
    state: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(displays, "LOGS", 2)
    display = Display(RunReport(state))
    for host, seconds in zip(state.inventory, (2.0, 60.0, 7.0, 30.0), strict=True):
        at_work(display, host, seconds, LastLine(host, f"log of {host.name}".strip))
    display._lines(120, 24)
    gevent.sleep(0)
    shown = {line.split()[0]: line for line in display._lines(120, 24)[1:]}
    assert {name for name, line in shown.items() if "log of" in line} == {"@fake/b", "@fake/d"}
    assert shown["@fake/b"].endswith("log of @fake/b")
    monkeypatch.setattr(displays, "LOGS", 20)
    display._lines(120, 24)
    gevent.sleep(0)
    logs = [line for line in display._lines(120, 24) if "log of" in line]
    assert [line.split()[0] for line in logs] == ["@fake/b", "@fake/d", "@fake/c"]


def test_a_line_of_a_log_file_waits_for_the_slowest_host_but_not_long(
    state: State, host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(displays, "LOG_LINE_SECONDS", 0.05)
    display = Display(RunReport(state))
    at_work(display, host, 9.0, LastLine(host, lambda: "Installed: dkms"))
    assert display._beat().endswith("Installed: dkms")
    never = Event()
    at_work(display, host, 9.0, LastLine(host, lambda: str(never.wait())))
    assert "@fake/a 9 s" in display._beat()
