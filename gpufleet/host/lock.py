"""One run at a time on a host: a lock that is released when the run ends, for whatever reason.

A process on the host holds it while the connection exists. The run acquires it before the first
change, so that a converged host costs nothing, and only if no other run has held it since the facts
of the plan were gathered.

`wait_before_planning` of packages/operations/locks.py waits for another run, up to
node_lock_timeout seconds.

A command on the host may outlive the run that sent it. Each command therefore holds a second lock,
and another run waits for that too.
"""

from __future__ import annotations

from typing import Any

import gevent
from gevent import Greenlet
from pyinfra.api import FunctionCommand, Host, State, StringCommand

from gpufleet.core.findings import Finding
from gpufleet.core.identity import new_identity
from gpufleet.core.stopped import Stopped
from gpufleet.core.visible import one_line
from gpufleet.facts.files import INCOMING
from gpufleet.facts.model import RUN_LOCK, STEP_LOCK, NodeFacts
from gpufleet.host import findings
from gpufleet.host.asking import frame_command, framed_answer, privilege_arguments
from gpufleet.host.shell import quote_command, script_command
from gpufleet.host.sudo import run_on_host
from gpufleet.host.trouble import explain_failed_command

LOCK_POLL_SECONDS = 0.1  # seconds between two reads of its holder
DURING_LOCK = "while the lock on it was taken"
_KEY = "gpufleet_lock"  # key of pyinfra's connector_data
_names: dict[str, str] = {}  # text of a lock of this process -> the host's name in the inventory

Ended = tuple[list[str], list[str]]  # output and errors of the process that held the lock


class HostLock:
    """The lock on one host during a run."""

    def __init__(self, seen: str) -> None:
        """`seen`: content of the lock file when the facts were gathered."""
        self.seen = seen
        self.text = new_identity()  # printable ASCII, as in the facts of a host
        self.used = False  # True after commands that change the host
        self._was_held = False
        self._holding: Greenlet | None = None  # returns Ended

    @property
    def held(self) -> bool:
        return self._holding is not None and not self._holding.ready()

    def take(self, host: Host) -> None:
        """Acquire the lock, again if the process that held it has ended.

        Raises Stopped if another run holds it, or held it after `seen` or after this run did.
        """
        words = (RUN_LOCK, self.seen, self.text, INCOMING)
        wanted = frame_command(script_command("host/hold_host", *words))
        self._holding = gevent.spawn(_hold, host, wanted, privilege_arguments(host))
        while self.held:
            if _content(host) == self.text:
                self._was_held = True
                return
            gevent.sleep(LOCK_POLL_SECONDS)
        done = findings.NO_MORE if self._was_held else findings.NOTHING
        output, errors = self._holding.get()
        raise Stopped(_why_not(host, output, errors, done))

    def renew(self) -> None:
        """Reset the lock after this run rebooted the host: the lock file is empty then."""
        if self._holding is not None:
            self._holding.kill(block=False)
        self._holding, self.seen = None, ""


def arm_lock(host: Host, facts: NodeFacts) -> None:
    """Make the first change of the host acquire its lock. A lock that an earlier step of this
    process holds is kept, because it lasts as long as the connection."""
    there = lock_of(host)
    if there and there.held and facts.run_lock == there.text:
        there.used = False
        return
    remember_lock(host, HostLock(facts.run_lock))


def remember_lock(host: Host, lock: HostLock) -> None:
    """Register the lock of a host that later steps may change."""
    host.connector_data[_KEY] = lock
    _names[lock.text] = host.name


def is_our_lock(text: str, host: str) -> bool:
    """True if an earlier step of this process wrote this text into the lock of the host."""
    return _names.get(text) == host


def lock_of(host: Host) -> HostLock | None:
    """The lock of a host that may be changed, or None if no lock is needed, as for a cluster."""
    found = host.connector_data.get(_KEY)
    return found if isinstance(found, HostLock) else None


def acquire_lock(state: State, host: Host, lock: HostLock) -> bool:
    """Acquire the lock. pyinfra uses the result only if a function takes `state` and `host`."""
    lock.take(host)
    return True


def as_step(
    command: str | StringCommand | FunctionCommand,
) -> str | StringCommand | FunctionCommand:
    """The command, wrapped to hold the lock of steps until it has ended on the host.

    Only the wrapping shell holds the lock, not its children: a daemon would keep it. The trailing
    `exit` prevents the shell from replacing itself with its last command.
    """
    if isinstance(command, FunctionCommand):  # a function on this machine
        return command
    inner = StringCommand(command.strip()) if isinstance(command, str) else command
    after = f"; }} 9>&-; exit $? ) 9>>{STEP_LOCK}"
    return StringCommand("( flock 9 && {", inner, after, **inner.connector_arguments)


def holder_name(text: str) -> str:
    """The name of a lock's holder, for messages."""
    return one_line(text.rpartition(" [")[0] or text) or "unknown holder"


def _hold(host: Host, wanted: StringCommand, how: dict[str, Any]) -> Ended:
    """Run the process that holds the lock, until the process or the connection ends."""
    try:
        _, output = run_on_host(host, wanted, **how)
    except Exception as error:  # noqa: BLE001 - ends with the connection, with any error
        return [], [type(error).__name__]
    return framed_answer(output.stdout_lines) or [], output.stderr_lines


def _content(host: Host) -> str:
    """The current content of the lock file."""
    command = frame_command(quote_command("cat", RUN_LOCK))
    ok, output = run_on_host(host, command, **privilege_arguments(host))
    return "".join(framed_answer(output.stdout_lines) or ()) if ok else ""


def _why_not(host: Host, output: list[str], errors: list[str], done: str) -> Finding:
    word, _, text = (output[-1] if output else "").partition(" ")
    other = _names.get(text, host.name)
    if other != host.name:
        return findings.SAME_MACHINE(this=host.name, other=other, done=done)
    if word == "held":
        return findings.ANOTHER_RUN(holder=holder_name(text), done=done)
    if word == "changed":
        return findings.CHANGED_SINCE(holder=holder_name(text), done=done)
    return explain_failed_command(host, errors, DURING_LOCK)
