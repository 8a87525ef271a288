"""A run's access to its hosts: steps, and the state file on each host."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from pyinfra.api import Host, StringCommand

from gpufleet.core.stopped import Stopped
from gpufleet.core.visible import one_line
from gpufleet.facts.model import RUN_LOCK
from gpufleet.host.asking import frame_command, framed_answer, privilege_arguments
from gpufleet.host.lock import HostLock, holder_name, is_our_lock, lock_of, remember_lock
from gpufleet.host.shell import script_command
from gpufleet.host.sudo import run_on_host
from gpufleet.host.trouble import explain_failed_command
from gpufleet.host.upgrade_settings import Subject
from gpufleet.host.upgrade_state import STATE_FILE, HostState, parse_state, state_text
from gpufleet.upgrade.findings.hosts import STATE_UNREADABLE
from gpufleet.upgrade.operations.result import StepResult, step_result
from gpufleet.upgrade.operations.session import Session
from gpufleet.upgrade.show import Status
from gpufleet.upgrade.subjects import data_of

HARMLESS = ("look", "prepare", "take")  # steps that do not affect the running driver
WRITING, READING = "while its state was written", "while its state was read"
MAX_PARALLEL_HOSTS = 100

T = TypeVar("T")


class HostSteps:
    """Steps of one run on the hosts of a session."""

    def __init__(self, session: Session, deploy: Path, subject: Subject) -> None:
        """`deploy`: the file that executes a step; `subject`: driver, toolkit or reboot."""
        self.session, self.deploy, self.subject, self.run = session, deploy, subject, ""

    def each(self, call: Callable[[str], T], names: Iterable[str]) -> dict[str, T]:
        """Call a function for hosts in parallel."""
        names = list(names)
        self.session.connect(names)
        with ThreadPoolExecutor(MAX_PARALLEL_HOSTS) as pool:
            return dict(zip(names, pool.map(call, names), strict=True))

    def look(self, name: str, version: str = "", branch: str = "") -> StepResult:
        return self._step(name, "look", data_of(self.subject, version, branch))

    def step(self, name: str, step: str, version: str, reboot: str = "") -> StepResult:
        """Execute a step. `version`: of the subject; `reboot`: node_reboot, or "" for the
        inventory's."""
        how = {"node_reboot": reboot} if reboot else {}
        return self._step(name, step, {**how, **data_of(self.subject, version)})

    def _step(self, name: str, step: str, data: Mapping[str, Any]) -> StepResult:
        """GPU work blocks every step except those that do not affect the driver."""
        run = {"upgrade_run": self.run} if self.run else {}
        mine = {"upgrade_step": step, "driver_allow_disruption": step in HARMLESS, **run, **data}
        found, touched = self.session.step(name, self.deploy, mine)
        return step_result(found, touched=touched)

    def read(self, name: str) -> Status:
        """The state that a host reports. Raises nothing."""
        try:
            lines = self.session.call(name, _read)
            holder = "" if lines[0] == "-" or is_our_lock(lines[0], name) else holder_name(lines[0])
            return Status(name, parse_state("\n".join(lines[1:])), holder)
        except Stopped as error:
            found = error.findings[0]
        except (ValueError, IndexError) as error:
            text = one_line(str(error).split("\n", 1)[0])
            found = STATE_UNREADABLE(file=STATE_FILE, problem=text)
        return Status(name, problem=found.text)

    def write(self, name: str, state: HostState) -> None:
        """Write the state to the host and keep its lock from then on. Raises Stopped."""
        self.session.call(name, lambda host: _write(host, state_text(state)))


def _read(host: Host) -> list[str]:
    """The holder of the host's lock, then the content of the state file. Raises Stopped."""
    return _answer(host, script_command("upgrade/read_state", STATE_FILE, RUN_LOCK), READING)


def _write(host: Host, text: str) -> None:
    lock = lock_of(host)
    if lock is None:
        lock = HostLock(_read(host)[0].removeprefix("-"))
        remember_lock(host, lock)
    if not lock.held:
        lock.take(host)
    lock.used = True
    _answer(host, script_command("upgrade/put_state", STATE_FILE, text), WRITING)


def _answer(host: Host, command: StringCommand, doing: str) -> list[str]:
    """The lines that a command on the host prints. Raises Stopped if it fails."""
    ok, output = run_on_host(host, frame_command(command), **privilege_arguments(host))
    lines = framed_answer(output.stdout_lines) if ok else None
    if lines is None:
        raise Stopped(explain_failed_command(host, output.stderr_lines, doing))
    return lines
