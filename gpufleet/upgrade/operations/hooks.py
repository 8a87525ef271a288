"""Commands of the user's on this machine, for one host each."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterable
from contextlib import suppress

from gpufleet.upgrade.operations.output import end_of

SHOWN = 200  # characters of their output
GRACE = 10.0  # seconds from SIGTERM to SIGKILL
POLL = 0.05  # seconds between two looks at processes that are to end
SLICE = 1.0  # seconds of waiting between two looks at whether a command cannot be ended
STAYS = "it runs as another user, as with sudo, and cannot be ended: it may still be at work"


class Hook:
    """One command that runs; `{host}` in it stands for the host's name. Raises OSError.

    It and what it starts are a group of processes of their own, which ends as one.
    """

    def __init__(self, command: str, host: str, timeout: float) -> None:
        self.ends = time.monotonic() + timeout
        self.timeout = timeout
        self.stays = False  # it was to end, and this user may not end it
        words = [word.replace("{host}", host) for word in shlex.split(command)]
        self.output = tempfile.TemporaryFile()  # noqa: SIM115 as long as the command runs
        self.process = subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=self.output, stderr=subprocess.STDOUT,
            env={**os.environ, "GPUFLEET_HOST": host}, start_new_session=True,
        )  # fmt: skip

    def poll(self) -> str | None:
        """None while it runs; "" once it succeeded, else why it did not."""
        status = self.process.poll()
        if self.stays:
            return STAYS
        if status is None and time.monotonic() < self.ends:
            return None
        if status is None:
            self.end()
            return STAYS if self.stays else f"it was ended after {self.timeout:.0f} s"
        return "" if status == 0 else f"exit status {status}: {self._said()}"

    def wait(self) -> str:
        """As `poll`, at its end."""
        while (result := self.poll()) is None:
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(max(min(self.ends - time.monotonic(), SLICE), 0))
        return result

    def end(self) -> None:
        """End it with what it has started, if it still runs and may be ended."""
        end_all([self])

    @property
    def is_at_work(self) -> bool:
        """Whether it still runs and may be ended."""
        return not self.stays and self.process.poll() is None

    def is_left(self) -> bool:
        """Whether something of it runs, also what cannot be ended."""
        self.process.poll()  # one that has ended counts until it is waited for
        return self.send(0) is not False

    def send(self, number: int) -> bool | None:
        """Send a signal to the group; False if there is none any more, None if it cannot be sent:
        all that is left belongs to other users."""
        try:
            os.killpg(self.process.pid, number)
        except ProcessLookupError:
            return False
        except OSError:
            return None
        return True

    def _said(self) -> str:
        return end_of(self.output, SHOWN) or "no output"


def end_all(hooks: Iterable[Hook]) -> None:
    """End commands with what they have started, those that still run and may be ended. All have
    the same time for it."""
    left = [hook for hook in hooks if hook.is_at_work]
    for hook in left:
        hook.send(signal.SIGTERM)
    left = _left(left)
    for hook in left:
        hook.send(signal.SIGKILL)
    ends = time.monotonic() + GRACE
    for hook in left:
        with suppress(subprocess.TimeoutExpired):
            hook.process.wait(max(ends - time.monotonic(), 0))
        hook.stays = hook.send(0) is None


def _left(hooks: Iterable[Hook]) -> list[Hook]:
    """Those of which something still runs when the time is over."""
    ends = time.monotonic() + GRACE
    left = [hook for hook in hooks if hook.is_left()]
    while left and time.monotonic() < ends:
        time.sleep(POLL)
        left = [hook for hook in left if hook.is_left()]
    return left


class Hooks:
    """The commands of a run: those that are to be polled, by host, and all that are to end with the
    process."""

    def __init__(self) -> None:
        self.polled: dict[str, Hook] = {}
        self._guard = threading.RLock()  # also of a signal in between
        self._running: set[Hook] = set()
        self._over = False

    def start(self, command: str, host: str, timeout: float) -> Hook:
        """Start a command. Raises OSError."""
        with self._guard:
            if self._over:
                raise InterruptedError("the run was interrupted")
            hook = Hook(command, host, timeout)
            self._running.add(hook)
        if self._over:  # meanwhile
            hook.end()
        return hook

    def result(self, command: str, host: str, timeout: float) -> str:
        """Run a command to its end; "" if it succeeded, else why it did not."""
        try:
            hook = self.start(command, host, timeout)
        except OSError as error:
            return f"it cannot be started: {error.strerror or error}"
        said = hook.wait()
        self.done(hook)
        return said

    def done(self, hook: Hook) -> None:
        """Forget a command that has ended; what it printed is read no more."""
        with self._guard:
            self._running.discard(hook)
        hook.output.close()

    def end(self) -> None:
        """End them all, and start none any more."""
        with self._guard:
            self._over = True
            running = list(self._running)
        end_all(running)
