"""Work with a time limit, whatever it waits for."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class _Attempt(Generic[T]):
    def __init__(self, work: Callable[[threading.Event], T]) -> None:
        self._work = work
        self.given_up = threading.Event()
        self.done: list[T] = []
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            self.done.append(self._work(self.given_up))
        except BaseException as error:  # noqa: BLE001 raised again in the thread that waits
            self.error = error


def within(seconds: float, work: Callable[[threading.Event], T]) -> T:
    """What `work` returns or raises; TimeoutError where it takes longer than `seconds`.

    It runs in a thread: no time limit of a socket covers names, TLS, heads and redirects. The event
    that it is given is set when no caller waits for it any more.
    """
    attempt = _Attempt(work)
    thread = threading.Thread(target=attempt.run, daemon=True)
    thread.start()
    thread.join(seconds)
    attempt.given_up.set()
    if attempt.error:
        raise attempt.error
    if not attempt.done:
        raise TimeoutError
    return attempt.done[0]
