"""A process that is no child of this one: whether it is there, and signals for it."""

from __future__ import annotations

import os
import select
import signal
import threading
import time
from contextlib import suppress
from pathlib import Path

LOOK = 0.5  # seconds between two looks for a process, where the kernel does not report its end


class Process:
    """A process by its number, and by what no other one has that gets the number later: a
    descriptor of it, else the time of its start."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._guard = threading.RLock()  # also of a signal in between
        self._gone = False
        self._handle: int | None = None
        try:
            self._handle = os.pidfd_open(pid)
        except ProcessLookupError:
            self._gone = True
        except (AttributeError, OSError):  # another system, or an old kernel
            pass
        self._begun = _state_and_start(pid)[1]

    def is_there(self) -> bool:
        """Whether it is at work: not one that has ended and that nobody has asked for."""
        with self._guard:
            if self._gone:
                return False
            if self._handle is not None:
                return not _ended(self._handle, 0)
        try:
            os.kill(self.pid, 0)
        except (ProcessLookupError, PermissionError):
            return False
        state, begun = _state_and_start(self.pid)
        return begun == self._begun and state not in ("Z", "X")

    def wait(self) -> None:
        """Until it has ended."""
        if self._handle is not None and not self._gone:
            _ended(self._handle, None)
        while self.is_there():
            time.sleep(LOOK)

    def send(self, number: int) -> None:
        """Send it a signal; nothing to one that has ended."""
        with self._guard, suppress(ProcessLookupError):
            if self._gone:
                return
            if self._handle is not None:
                signal.pidfd_send_signal(self._handle, number)
            elif self.is_there():
                os.kill(self.pid, number)

    def forget(self) -> None:
        """It has ended."""
        with self._guard:
            self._gone = True
            if self._handle is not None:
                os.close(self._handle)
                self._handle = None


def _ended(handle: int, milliseconds: int | None) -> bool:
    """Whether a process ends in this time; None: without an end."""
    poll = select.poll()
    poll.register(handle, select.POLLIN)
    return bool(poll.poll(milliseconds))


def _state_and_start(pid: int) -> tuple[str, str]:
    """Of a process; "" where the system does not say."""
    try:
        words = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
        return words[0], words[19]
    except (OSError, IndexError):
        return "", ""
