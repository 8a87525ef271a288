"""Responses of servers that are not trusted: read within a size and a time."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent import futures
from typing import Any, TypeVar

from urllib3.exceptions import DecodeError, HTTPError

from gpufleet.core.limits import API_ANSWER, Limit

T = TypeVar("T")
CHUNK = 1 << 16  # bytes
ENCODINGS = ("", "identity", "gzip", "x-gzip", "deflate")


class ResponseRefused(HTTPError):
    """A response that is not read to its end; the text says why."""


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


def _read_part(response: Any) -> bytes:
    try:
        return bytes(response.read1(CHUNK, decode_content=True))
    except DecodeError as error:
        raise ResponseRefused(f"it cannot be decompressed: {error}") from error


def read_response(response: Any, limit: Limit, given_up: threading.Event) -> bytes:
    """The decoded content of a urllib3 response that is not read yet. Raises ResponseRefused, also
    when `given_up` is set, and the errors of urllib3."""
    encoding = (response.headers.get("Content-Encoding") or "").strip().lower()
    data = bytearray()
    try:
        if encoding not in ENCODINGS:  # several of them grow a millionfold
            raise ResponseRefused(f"it is encoded as {encoding[:80]}, which was not requested")
        while chunk := _read_part(response):
            data += chunk
            if len(data) > limit.bytes:
                raise ResponseRefused(limit.too_large)
            if given_up.is_set():
                raise ResponseRefused(limit.too_slow)
    except BaseException:
        response.close()  # the rest of it must not be read as the next response
        raise
    return bytes(data)


def bound_answers(rest: Any) -> None:
    """Read every response of a Kubernetes REST client within API_ANSWER, in size and in time."""
    send = rest.request

    def request(method: str, url: str, **more: Any) -> Any:
        def work(given_up: threading.Event) -> Any:
            response = send(method, url, **more)
            response.data = read_response(response.response, API_ANSWER, given_up)
            return response

        try:
            return within(API_ANSWER.seconds, work)
        except TimeoutError:
            raise ResponseRefused(API_ANSWER.too_slow) from None

    rest.request = request
