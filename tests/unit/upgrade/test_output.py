"""What is shown of the output of programs."""

from __future__ import annotations

import io
from typing import Any

import pytest

from gpufleet.upgrade.operations.output import READ, end_of

LONG = b"x" * READ


class Counting(io.BytesIO):
    read_in_all = 0

    def read(self, size: Any = -1) -> bytes:
        data = super().read(size)
        self.read_in_all += len(data)
        return data


@pytest.mark.parametrize(
    ("data", "shown"),
    [
        (b"", ""),
        (b"a\n b\r\n", "a b"),
        (b"failed: \x1b[2J\xff", "failed: \\x1b[2J\ufffd"),
        (b"token: abc\nfailed\n", "token: *** failed"),
        (b"password: abc " + LONG, "a line that is too long to be shown"),  # in part alone
        (b"password: abc " + LONG + b"\n", "a line that is too long to be shown"),
        (b"password: abc " + LONG + b"\rfailed", "failed"),  # a line that shows progress
        (b"password: abc " + LONG + b"\nfailed", "failed"),
        (LONG + b"\n" + b"y\n" * (READ // 2), "y y y"),  # the first line that is read is whole
        (b"-----BEGIN PRIVATE KEY-----\nabc\n-----END PRIVATE KEY-----\nz", "KEY-----***-----END"
         " PRIVATE KEY----- z"),
    ],
)  # fmt: skip
def test_the_end_of_an_output_has_no_secrets(data: bytes, shown: str) -> None:
    output = Counting(data)
    found = end_of(output, 300)
    assert found.endswith(shown) if len(shown) > 1 else found == shown
    assert "abc" not in found
    assert output.read_in_all <= READ + 1


def test_no_more_than_asked_for_is_shown() -> None:
    assert end_of(io.BytesIO(b"abc def"), 3) == "def"
