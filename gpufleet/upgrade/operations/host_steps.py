"""A run's access to its hosts: steps, and the state file on each host."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from pyinfra.api import FactBase, Host, StringCommand

from gpufleet.core.stopped import Stopped
from gpufleet.core.visible import one_line
from gpufleet.facts.model import RUN_LOCK
from gpufleet.host.asking import answer, framed, privileges
from gpufleet.host.lock import HostLock, holder_name, is_ours, lock_of, remember
from gpufleet.host.shell import script
from gpufleet.host.sudo import run
from gpufleet.host.trouble import refusal
from gpufleet.upgrade.findings.hosts import STATE_UNREADABLE
from gpufleet.upgrade.host_state import FILE, HostState, parse_state, state_text
from gpufleet.upgrade.operations.result import Result, result_of
from gpufleet.upgrade.operations.session import Session
from gpufleet.upgrade.show import Status
from gpufleet.upgrade.subjects import Subject, data_of

HARMLESS = ("look", "prepare", "take")  # steps that do not affect the running driver
WRITING, READING = "while its state was written", "while its state was read"
AT_ONCE = 100

T = TypeVar("T")


class StateOnHost(FactBase[list[str]]):
    """The holder of the host's lock, then the content of the state file."""

    default = list

    def command(self) -> StringCommand:
        return framed(script("upgrade/read_state", FILE, RUN_LOCK))

    def process(self, output: Iterable[str]) -> list[str]:
        return answer(output) or []


class HostSteps:
    """Steps of one run on the hosts of a session."""

    def __init__(
        self, session: Session, deploy: Path, subject: Subject = "driver", run: str = ""
    ) -> None:
        """`deploy`: the file that executes a step; `subject`: driver, toolkit or reboot."""
        self.session, self.deploy, self.subject, self.run = session, deploy, subject, run

    def each(self, call: Callable[[str], T], names: Iterable[str]) -> dict[str, T]:
        """Call a function for hosts in parallel."""
        names = list(names)
        self.session.connect(names)
        with ThreadPoolExecutor(AT_ONCE) as pool:
            return dict(zip(names, pool.map(call, names), strict=True))

    def look(self, name: str, version: str = "", branch: str = "") -> Result:
        return self._step(name, "look", data_of(self.subject, version, branch))

    def step(self, name: str, step: str, version: str, reboot: str = "") -> Result:
        """Execute a step. `version`: of the subject; `reboot`: node_reboot, or "" for the
        inventory's."""
        how = {"node_reboot": reboot} if reboot else {}
        return self._step(name, step, {**how, **data_of(self.subject, version)})

    def _step(self, name: str, step: str, data: Mapping[str, Any]) -> Result:
        """GPU work blocks every step except those that do not affect the driver."""
        run = {"upgrade_run": self.run} if self.run else {}
        mine = {"upgrade_step": step, "driver_allow_disruption": step in HARMLESS, **run, **data}
        found, touched = self.session.step(name, self.deploy, mine)
        return result_of(found, touched=touched)

    def read(self, name: str) -> Status:
        """The state that a host reports. Raises nothing."""
        try:
            lines = self.session.call(name, _read)
            holder = "" if lines[0] == "-" or is_ours(lines[0], name) else holder_name(lines[0])
            return Status(name, parse_state("\n".join(lines[1:])), holder)
        except Stopped as error:
            found = error.findings[0]
        except (ValueError, IndexError) as error:
            text = one_line(str(error).split("\n", 1)[0])
            found = STATE_UNREADABLE(file=FILE, problem=text)
        return Status(name, problem=found.text)

    def write(self, name: str, state: HostState) -> None:
        """Write the state to the host and keep its lock from then on. Raises Stopped."""
        self.session.call(name, lambda host: _write(host, state_text(state)))


def _read(host: Host) -> list[str]:
    ok, output = run(host, StateOnHost().command(), **privileges(host))
    lines = answer(output.stdout_lines) if ok else None
    if lines is None:
        raise Stopped(refusal(host, output.stderr_lines, READING))
    return lines


def _write(host: Host, text: str) -> None:
    lock = lock_of(host)
    if lock is None:
        lock = HostLock(_read(host)[0].removeprefix("-"))
        remember(host, lock)
    if not lock.held:
        lock.take(host)
    lock.used = True
    ok, output = run(host, framed(script("upgrade/put_state", FILE, text)), **privileges(host))
    if not ok or answer(output.stdout_lines) is None:
        raise Stopped(refusal(host, output.stderr_lines, WRITING))
