"""Ctrl+C while programs load, and while greenlets read hosts."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

Handler = Callable[[int, Any], Any] | signal.Handlers


@contextmanager
def ended_by_interrupt() -> Iterator[None]:
    """End the process at once at Ctrl+C, by the signal: an exception in the middle of an import
    can leave gevent's locks broken, and Python then waits for ever when it ends."""
    with _interrupts_go_to(signal.SIG_DFL):
        yield


@contextmanager
def interrupt_main_greenlet() -> Iterator[None]:
    """Raise KeyboardInterrupt in the main greenlet at Ctrl+C. Python raises it in the running
    greenlet: a thread of paramiko prints it and ignores it."""
    from gevent import get_hub

    def handle(*_: object) -> None:
        get_hub().handle_system_error(KeyboardInterrupt, KeyboardInterrupt())

    with _interrupts_go_to(handle):
        yield


@contextmanager
def _interrupts_go_to(handler: Handler) -> Iterator[None]:
    """Replace Python's own handler, not that of a user who ignores SIGINT."""
    before = signal.getsignal(signal.SIGINT)
    if before is not signal.default_int_handler:
        yield
        return
    signal.signal(signal.SIGINT, handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
