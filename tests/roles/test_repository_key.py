"""The key of a repository is verified before anything is written, for any mirror's content."""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from gpufleet.core.openpgp import primary_fingerprints
from gpufleet.packages.operations import repository
from tests.roles.answers import framed_lines
from tests.unit.hosts import bare_host, plan_for

ERROR_PAGE = base64.b64encode(b"<html>Not what you asked for</html>").decode()


@pytest.mark.parametrize(
    "answer",
    [
        ERROR_PAGE,
        "error curl: (22) The requested URL returned error: 404 (exit status 22)",
        "%%% not base64 %%%",
    ],
)
def test_what_is_no_key_stops_the_host_before_a_file_is_written(
    carry_out: Callable[..., Any], answer: str
) -> None:
    plan = plan_for(bare_host()).repository
    host = carry_out(
        lambda: repository.trust_repository("Trust", plan, "driver", 5),
        {"gpufleet-fetch": framed_lines(answer)},
    )
    assert not any("put_files" in command for command in host.commands)
    # the fake host has no shell: that this last command fails is in test_quoting.py
    assert "exit 1" in host.commands[-1]
    assert "GF310" in host.commands[-1] or "GF311" in host.commands[-1]


def test_the_right_key_with_another_beside_it_stops_the_host(
    carry_out: Callable[..., Any], two_keys: tuple[str, bytes]
) -> None:
    """S1: `set(found) & set(expected)` took such a file as it was; a rogue key was trusted."""
    expected, both = two_keys
    found = plan_for(bare_host()).repository
    assert found.repository
    known = replace(found.repository, key_fingerprints=(expected,))
    plan = replace(found, repository=known)
    answer = base64.b64encode(both).decode()
    host = carry_out(
        lambda: repository.trust_repository("Trust", plan, "driver", 5),
        {"gpufleet-fetch": framed_lines(answer)},
    )
    assert not any("put_files" in command for command in host.commands)
    assert "GF310" in host.commands[-1]


@pytest.fixture
def two_keys() -> tuple[str, bytes]:
    """The fingerprint of the first, and both in one file; signatures are unused."""

    def packet(body: bytes) -> bytes:
        return b"\xc6\xff" + len(body).to_bytes(4, "big") + body

    first, second = (packet(b"\x04" + bytes(4) + b"\x01" + name * 8) for name in (b"a", b"b"))
    return primary_fingerprints(first)[0], first + second
