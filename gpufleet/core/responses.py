"""HTTP responses of servers that are not trusted, read within limits."""

from __future__ import annotations

import threading
import zlib
from typing import Any

from urllib3.exceptions import HTTPError

from gpufleet.core.deadline import within
from gpufleet.core.limits import API_ANSWER, Limit

CHUNK = 1 << 14  # bytes
ENCODINGS = ("gzip", "x-gzip", "deflate")


class ResponseRefused(HTTPError):
    """A response that is not read to its end; the text says why."""


class _Content:
    """The decoded bytes of a response. Raises ResponseRefused where there are more than `limit`:
    compressed data can grow a thousandfold, and again for each encoding of several."""

    def __init__(self, encoding: str, limit: Limit) -> None:
        self.data = bytearray()
        self._limit = limit
        encoding = encoding.strip().lower()
        if encoding not in ("", "identity", *ENCODINGS):
            raise ResponseRefused(f"it is encoded as {encoding[:80]}, which was not requested")
        self._unpacker = _unpacker() if encoding in ENCODINGS else None

    def add(self, chunk: bytes) -> None:
        while chunk:
            chunk = self._add(chunk)
            if len(self.data) > self._limit.bytes:
                raise ResponseRefused(self._limit.too_large)

    def _add(self, chunk: bytes) -> bytes:
        """Decode a part; what is left of it."""
        if self._unpacker is None:
            self.data += chunk
            return b""
        if self._unpacker.eof:
            self._unpacker = _unpacker()  # another gzip member
        try:
            self.data += self._unpacker.decompress(chunk, self._limit.bytes + 1 - len(self.data))
        except zlib.error as error:
            raise ResponseRefused(f"it cannot be decompressed: {error}") from error
        return bytes(self._unpacker.unused_data)

    def end(self) -> bytes:
        if self._unpacker and self.data and not self._unpacker.eof:
            raise ResponseRefused("it is truncated")
        return bytes(self.data)


def _unpacker() -> Any:
    return zlib.decompressobj(zlib.MAX_WBITS | 32)  # gzip or zlib, after its header


def read_response(response: Any, limit: Limit, given_up: threading.Event) -> bytes:
    """The decoded content of a urllib3 response that is not read yet. Raises ResponseRefused, also
    when `given_up` is set, and the errors of urllib3."""
    try:
        content = _Content(response.headers.get("Content-Encoding") or "", limit)
        while chunk := response.read1(CHUNK, decode_content=False):
            content.add(chunk)
            if given_up.is_set():
                raise ResponseRefused(limit.too_slow)
    except BaseException:
        response.close()  # the rest of it must not be read as the next response
        raise
    return content.end()


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
