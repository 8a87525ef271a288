"""What a command logs on a host while it runs, for the host's line of progress.

It is read by another command on the same connection, which the first one knows nothing of. A read
is never cut off: that could cut a message of the connection.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import gevent
from gevent import Greenlet
from pyinfra import logger
from pyinfra.api import Host

from gpufleet.core.quoting import quote_last_line

INTERVAL = 3.0  # seconds between two reads, and before the first
PATIENCE = 2.0  # seconds that the end of a command waits for a read
LONGEST = 120  # characters of a line
MOST = 8192  # characters that are read; a host may send more than it is asked for
_LINE, _REFUSED = "gpufleet_last_line", "gpufleet_no_last_line"  # in pyinfra's connector_data


class LastLine:
    """The last line that one command logs. `read` asks the host, and may take its time."""

    def __init__(self, host: Host, read: Callable[[], str]) -> None:
        self.text = ""
        self._host, self._read = host, read
        self._next = time.monotonic() + INTERVAL
        self._reading: Greenlet | None = None

    @classmethod
    def of(cls, host: Host) -> LastLine | None:
        """That of the command which a host carries out; None where there is none."""
        found = host.connector_data.get(_LINE)
        return found if isinstance(found, cls) else None

    @contextmanager
    def shown(self) -> Iterator[None]:
        """Within, the command runs.

        An SSH server may allow no further session on the connection: after a read that failed or
        hangs nothing more is read of this host, and the session of a read is free for the next
        command.
        """
        data = self._host.connector_data
        data[_LINE] = None if data.get(_REFUSED) else self
        try:
            yield
        finally:
            if data[_LINE] is self:
                data[_LINE] = None
        if self._reading is not None:
            self._reading.join(PATIENCE)
            if not self._reading.ready():
                data[_REFUSED] = True

    def refresh(self) -> Greenlet | None:
        """Begin a read if it is time to; returns the last one, if any."""
        now = time.monotonic()
        if (self._reading is None or self._reading.ready()) and now >= self._next:
            self._next = now + INTERVAL
            self._reading = gevent.spawn(self._update)
        return self._reading

    def _update(self) -> None:
        try:
            self.text = _last(self._read())
        except Exception as error:  # noqa: BLE001 - the command goes on, and says what is wrong
            logger.debug(f"the log of a command cannot be read while it runs: {error}")
            self._host.connector_data.update({_LINE: None, _REFUSED: True})


def _last(text: str) -> str:
    """The last line; without one whose start was not read, which may be part of a secret."""
    lines = text[-MOST:]
    return quote_last_line(lines.partition("\n")[2] if len(text) > MOST else lines, LONGEST)
