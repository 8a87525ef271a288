"""How much an API server may send: its operator can be another one than the controller's."""

from __future__ import annotations

import threading
import time
from typing import Any

from gpufleet.core.deadline import within
from gpufleet.core.limits import (
    API_ANSWER,
    API_LISTS,
    API_LISTS_VALUES,
    API_PAGES,
    API_VALUES,
    Limit,
)
from gpufleet.core.responses import ResponseRefused, read_response


class Allowance:
    """What several responses of an API server may take together. Raises ResponseRefused.

    Values are counted before JSON is parsed: `[]` has two bytes, and takes 64 in memory. Several
    threads may share it.
    """

    def __init__(self, limit: Limit, values: int, pages: int) -> None:
        self._limit, self._most = limit, values
        self._bytes = self._values = 0
        self._pages = pages
        self._lock = threading.Lock()
        self._end = time.monotonic() + limit.seconds

    def take(self, data: bytes) -> None:
        values = data.count(b",") + data.count(b"[") + data.count(b"{")
        with self._lock:
            self._bytes += len(data)
            self._pages -= 1
            self._values += values
        if self._bytes > self._limit.bytes:
            raise ResponseRefused(self._limit.too_large)
        if self._values > self._most:
            raise ResponseRefused(f"it sends more than {self._most:,} values")
        if self._pages < 0:
            raise ResponseRefused("its lists do not end")
        if time.monotonic() > self._end:
            raise ResponseRefused(self._limit.too_slow)


def one_answer() -> Allowance:
    return Allowance(API_ANSWER, API_VALUES, 1)


def all_lists() -> Allowance:
    """For everything that is read of a cluster at a time."""
    return Allowance(API_LISTS, API_LISTS_VALUES, API_PAGES)


def bound_answers(rest: Any) -> None:
    """Read every response of a Kubernetes REST client within API_ANSWER, in size and in time, and
    while its attribute `allowance` is set, all together within that."""
    send = rest.request
    rest.allowance = None

    def request(method: str, url: str, **more: Any) -> Any:
        def work(given_up: threading.Event) -> Any:
            response = send(method, url, **more)
            response.data = read_response(response.response, API_ANSWER, given_up)
            for allowance in filter(None, (one_answer(), rest.allowance)):
                allowance.take(response.data)
            return response

        try:
            return within(API_ANSWER.seconds, work)
        except TimeoutError:
            raise ResponseRefused(API_ANSWER.too_slow) from None

    rest.request = request
