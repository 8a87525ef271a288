"""scripts/lock_holder.sh, and the wait for a lock: its holder, and changes made before the wait."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyinfra import host, state

from gpufleet.driver.role import ROLE as DRIVER
from gpufleet.host import lock as host_lock
from gpufleet.host.operation import Commands, host_operation
from gpufleet.host.shell import quote_command, script_command
from gpufleet.node.operations.removal import RemovalNode
from gpufleet.node.settings import load_node_settings
from gpufleet.node.unfinished import NOTHING_LEFT
from gpufleet.packages.findings import LOCK_HELD
from gpufleet.packages.operations import locks
from gpufleet.packages.operations.locks import wait_for_lock
from gpufleet.packages.operations.reading import LockHolder
from gpufleet.roles.removal.remove import remove
from gpufleet.run.reporting import RunReport
from tests.roles.answers import framed_lines
from tests.unit.hosts import bare_host
from tests.unit.node.removal_plan_setup import host as recorded_host
from tests.unit.node.removal_plan_setup import plan as removal_plan

HOLDER = """
import fcntl, sys
file = open(sys.argv[1], "a")
{how}
print("held", flush=True)
sys.stdin.read()
"""
BY_FCNTL = "fcntl.lockf(file, fcntl.LOCK_EX)"
BY_FLOCK = "fcntl.flock(file, fcntl.LOCK_EX)"
LOCKS = ("dpkg/lock-frontend", "dpkg/lock", "apt/lists/lock", "rpm/.rpm.lock")
PIDS = {"/var/run/": "run", "/var/cache/dnf/": "cache", "/var/lib/dnf/": "dnf"}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A host with every lock file that the script reads, and no lock."""
    for name in (*LOCKS, "archives/lock", *(f"{folder}/none" for folder in PIDS.values())):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    return tmp_path


def look(root: Path, locks: str | None = None) -> str:
    """The script's output with its files below `root`; `locks`: the kernel's list."""
    text = script_command("packages/lock_holder").get_raw_value()
    for there, here in {**PIDS, "/var/cache/apt/": ".", "/var/lib/": "."}.items():
        text = text.replace(there, f"{root}/{here}/")
    if locks is not None:
        (root / "locks").write_text(locks)
        text = text.replace("/proc/locks", str(root / "locks"))
    done = subprocess.run(["sh", "-c", text], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return done.stdout.strip()


@contextmanager
def holding(path: Path, how: str = BY_FCNTL) -> Iterator[int]:
    """A process that holds a lock on `path`."""
    words = [sys.executable, "-c", HOLDER.format(how=how), str(path)]
    with subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout
        assert process.stdin
        assert process.stdout.readline() == "held\n"
        yield process.pid
        process.stdin.close()


def line(root: Path, name: str, pid: int, kind: str = "POSIX", device: str = "00:1f") -> str:
    """A lock in the kernel's list; its device is arbitrary, as a file system has several."""
    inode = (root / name).stat().st_ino
    return f"1: {kind}  ADVISORY  WRITE {pid} {device}:{inode} 0 EOF\n"


@pytest.mark.parametrize("name", [*LOCKS, "archives/lock"])
def test_who_has_locked_a_file_of_the_package_manager_is_named(root: Path, name: str) -> None:
    assert look(root) == ""
    with holding(root / name) as pid:
        assert look(root).endswith(f" ({pid})")
    assert look(root) == ""


@pytest.mark.parametrize("name", LOCKS)
def test_a_file_elsewhere_with_the_same_number_is_no_lock(root: Path, name: str) -> None:
    """On a tmpfs an unprivileged user can choose inode numbers; they also collide by chance."""
    (root / "mine").touch()
    with holding(root / "mine") as stranger:
        listed = line(root, name, stranger, device="00:2a")
        assert look(root, listed) == ""
        with holding(root / name) as ours:  # behind that one in the kernel's list
            assert look(root, listed + line(root, name, ours)).endswith(f" ({ours})")


def test_a_flock_is_not_in_the_way_of_a_package_manager(root: Path) -> None:
    """Every user can flock .rpm.lock, which is world-readable; rpm acquires its lock anyway."""
    with holding(root / "rpm/.rpm.lock", BY_FLOCK):
        assert look(root) == ""


def test_who_waits_for_a_lock_does_not_hold_it(root: Path) -> None:
    with holding(root / "dpkg/lock", "pass") as waiting:
        text = line(root, "dpkg/lock", waiting)
        assert look(root, text)
        assert look(root, text.replace("POSIX", "-> POSIX")) == ""


@pytest.mark.parametrize("file", ["run/yum.pid", "cache/metadata_lock.pid", "dnf/rpmdb_lock.pid"])
def test_a_number_in_a_file_counts_while_there_is_such_a_process(root: Path, file: str) -> None:
    with holding(root / "mine") as pid:
        (root / file).write_text(str(pid))
        assert look(root).endswith(f" ({pid}, by {root}/{file})")
    assert look(root) == ""


@pytest.mark.parametrize("text", ["self", "1/../self", "net", "\n", "-1", "; echo x", "*", ".."])
def test_what_is_no_number_of_a_process_is_no_lock(root: Path, text: str) -> None:
    (root / "run/yum.pid").write_text(text)
    assert look(root) == ""


@host_operation
def act(*words: str) -> Commands:
    """
    Wait for the package manager, and run commands.

    + words: the commands
    """
    for word in words:
        yield quote_command(word)
    yield wait_for_lock(0)


@pytest.mark.parametrize(
    ("words", "said"),
    [((), "This run changed nothing."), (("unload",), "This run changed nothing more.")],
)
def test_a_run_that_waits_in_vain_says_whether_it_has_changed_the_host(
    carry_out: Callable[..., Any],
    words: tuple[str, ...],
    said: str,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(host_lock.HostLock, "take", lambda lock, _: None)

    parts = []

    def deploy() -> None:
        state.add_callback_handler(RunReport(state))
        host_lock.arm_lock(host, bare_host())
        parts.append(RunReport.of(state).host(host.name))
        parts[0].findings.append(LOCK_HELD(holder="apt-get (7)"))
        act("Act", *words)

    done = carry_out(deploy, {"gpufleet-lock_holder": framed_lines("apt-get (7)")})
    assert done.failed
    assert [each.code for each in parts[0].findings] == ["GF308"], "GF305 is of the same lock"
    (line,) = [text for text in caplog.messages if "GF308" in text]
    assert "apt-get (7) held" in line
    assert said in line


def test_a_wait_is_reported_every_ten_seconds(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    passed = [1000.0]
    clock = SimpleNamespace(
        monotonic=lambda: passed[0], sleep=lambda seconds: passed.append(passed.pop() + seconds)
    )
    monkeypatch.setattr(locks, "time", clock)
    monkeypatch.setattr(locks, "read_fact", lambda kind: "apt-get (7)" * (kind is LockHolder))
    caplog.set_level("INFO", "pyinfra")
    waiting: Any = SimpleNamespace(print_prefix="[gpu-1] ")
    problem = locks.wait_before_planning(waiting, 25)
    assert problem
    assert problem.code == "GF308"
    assert [text.rpartition(": ")[2] for text in caplog.messages] == [
        "0 of 25 s", "10 of 25 s", "20 of 25 s",
    ]  # fmt: skip
    assert passed == [1025.0]


def test_a_removal_waits_before_it_takes_anything_away(
    carry_out: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(host_lock.HostLock, "take", lambda lock, _: None)
    facts = recorded_host()
    plan = removal_plan(facts, NOTHING_LEFT)
    settings, _ = load_node_settings({"node_lock_timeout": 0})
    assert settings
    assert plan.of(DRIVER).unload

    def deploy() -> None:
        state.add_callback_handler(RunReport(state))
        host_lock.arm_lock(host, facts)
        remove(RemovalNode(settings, facts, plan, RunReport.of(state).host(host.name)))

    done = carry_out(deploy, {"gpufleet-lock_holder": framed_lines("apt-get (7)")})
    assert done.failed
    assert done.commands
    assert all("gpufleet-lock_holder" in sent for sent in done.commands)
    assert "This run changed nothing." in caplog.text
