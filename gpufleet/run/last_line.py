"""Reads the last line that a command logs on a host, for the host's line of progress.

Another command reads it on the same connection; the first command does not notice. A read is never
aborted, because that could cut a message of the connection in two.
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

LAST_LINE_INTERVAL = 3.0  # seconds between two reads, and before the first
LAST_LINE_TIMEOUT = 2.0  # seconds to wait for a read at the end of a command
MAX_LAST_LINE_CHARS = 120  # characters of a line
MAX_READ_CHARS = 8192  # characters to use; a host may send more than requested
_LINE, _REFUSED = "gpufleet_last_line", "gpufleet_no_last_line"  # in pyinfra's connector_data


class LastLine:
    """The last line that one command logs. `read` asks the host and may be slow."""

    def __init__(self, host: Host, read: Callable[[], str]) -> None:
        self.text = ""
        self._host, self._read = host, read
        self._next = time.monotonic() + LAST_LINE_INTERVAL
        self._reading: Greenlet | None = None

    @classmethod
    def of(cls, host: Host) -> LastLine | None:
        """The last line of the command that the host runs now, or None if it logs no line."""
        found = host.connector_data.get(_LINE)
        return found if isinstance(found, cls) else None

    @contextmanager
    def shown(self) -> Iterator[None]:
        """Run the command within this context.

        An SSH server may allow no further session on the connection. After a read that failed or
        hangs, nothing more is read from this host. At the end, the session of a read becomes free
        for the next command.
        """
        data = self._host.connector_data
        data[_LINE] = None if data.get(_REFUSED) else self
        try:
            yield
        finally:
            if data[_LINE] is self:
                data[_LINE] = None
        if self._reading is not None:
            self._reading.join(LAST_LINE_TIMEOUT)
            if not self._reading.ready():
                data[_REFUSED] = True

    def refresh(self) -> Greenlet | None:
        """Begin a read if it is due; returns the last one, if any."""
        now = time.monotonic()
        if (self._reading is None or self._reading.ready()) and now >= self._next:
            self._next = now + LAST_LINE_INTERVAL
            self._reading = gevent.spawn(self._update)
        return self._reading

    def _update(self) -> None:
        try:
            text = self._read()
            if len(text) > MAX_READ_CHARS:  # a line without its start may have half a secret
                text = text[-MAX_READ_CHARS:].partition("\n")[2]
            self.text = quote_last_line(text, MAX_LAST_LINE_CHARS)
        except Exception as error:  # noqa: BLE001 - the command goes on, and says what is wrong
            logger.debug(f"the log of a command cannot be read while it runs: {error}")
            self._host.connector_data.update({_LINE: None, _REFUSED: True})
