"""Work with a time limit, whatever it waits for."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent import futures
from typing import TypeVar

T = TypeVar("T")


def within(seconds: float, work: Callable[[threading.Event], T]) -> T:
    """What `work` returns or raises; TimeoutError where it takes longer than `seconds`.

    It runs in a thread: no time limit of a socket covers names, TLS, heads and redirects. The event
    that it is given is set when no caller waits for it any more.
    """
    given_up = threading.Event()
    done: futures.Future[T] = futures.Future()

    def run() -> None:
        try:
            done.set_result(work(given_up))
        except BaseException as error:  # noqa: BLE001 raised again in the thread that waits
            done.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    try:
        return done.result(seconds)
    except futures.TimeoutError:  # before Python 3.11 another one than Python's own
        raise TimeoutError from None
    finally:
        given_up.set()
