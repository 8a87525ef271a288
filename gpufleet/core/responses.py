"""Reads responses of untrusted servers within limits of size and time."""

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
    """A response that was not read to its end. The text says why."""


def run_within(seconds: float, work: Callable[[threading.Event], T]) -> T:
    """Return or raise the result of `work`. Raises TimeoutError after `seconds`.

    `work` runs in a thread, because no socket timeout covers DNS, TLS, headers and redirects
    together. Its event is set when the caller no longer waits.
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
    except futures.TimeoutError:  # another class than TimeoutError before Python 3.11
        raise TimeoutError from None
    finally:
        given_up.set()


def _read_part(response: Any) -> bytes:
    try:
        return bytes(response.read1(CHUNK, decode_content=True))
    except DecodeError as error:
        raise ResponseRefused(f"it cannot be decompressed: {error}") from error


def read_response(response: Any, limit: Limit, given_up: threading.Event) -> bytes:
    """The decoded content of an unread urllib3 response. Raises urllib3's errors and
    ResponseRefused, also when `given_up` is set."""
    encoding = (response.headers.get("Content-Encoding") or "").strip().lower()
    data = bytearray()
    try:
        if encoding not in ENCODINGS:  # several of them can grow a millionfold
            raise ResponseRefused(f"it is encoded as {encoding[:80]}, which was not requested")
        while chunk := _read_part(response):
            data += chunk
            if len(data) > limit.bytes:
                raise ResponseRefused(limit.too_large)
            if given_up.is_set():
                raise ResponseRefused(limit.too_slow)
    except BaseException:
        response.close()  # the rest must not be read as the next response
        raise
    return bytes(data)


def bound_answers(rest: Any) -> None:
    """Limit each response of a Kubernetes REST client to API_ANSWER, in size and time."""
    send = rest.request

    def request(method: str, url: str, **more: Any) -> Any:
        def work(given_up: threading.Event) -> Any:
            response = send(method, url, **more)
            response.data = read_response(response.response, API_ANSWER, given_up)
            return response

        try:
            return run_within(API_ANSWER.seconds, work)
        except TimeoutError:
            raise ResponseRefused(API_ANSWER.too_slow) from None

    rest.request = request
