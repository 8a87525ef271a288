"""404s in the checks: the API server's own, and those of a load balancer before it."""

from __future__ import annotations

import pytest

from gpufleet.verify.cluster import _is_missing

SERVER = [
    b'{"kind": "Status", "reason": "NotFound", "message": "nodes \\"a\\" not found"}',
    '{"message": "the server could not find the requested resource"}',
    "404 page not found\n",
    "",
    None,
]
OTHERS = [b"default backend - 404", "<html>404</html>", "[]", '{"error": "no route"}', b"\xff"]


@pytest.mark.parametrize("body", SERVER)
def test_the_server_says_that_there_is_none(body: bytes | str | None) -> None:
    assert _is_missing(body)


@pytest.mark.parametrize("body", OTHERS)
def test_another_program_does_not_know(body: bytes | str) -> None:
    assert not _is_missing(body)
