"""Parts of foreign texts: without secrets, short, and soon."""

from __future__ import annotations

import time

import pytest

from gpufleet.core.excerpt import (
    LONGEST_LINE,
    READ,
    SAID,
    TOO_LONG,
    beginning,
    ending,
    outline,
    sentences,
)

SECRET = "hunter2hunter2"
KEY = ["-----BEGIN PRIVATE KEY-----", *["hunter2hunter2"] * 9000, "-----END PRIVATE KEY-----"]


def test_the_beginning_of_a_text() -> None:
    assert beginning("  no space \n") == "no space"
    assert beginning("") == ""
    assert beginning("a word, " * 400) == "a word, " * 99 + "a word,…"
    assert beginning("x" * 900) == TOO_LONG
    assert beginning("接続できません。" * 200, 200) == f"{('接続できません。' * 200)[:200]}…"
    assert beginning(f"GET https://a.example/{'x' * 900}") == "GET https:…"
    assert len(beginning("ab " * 10**6)) <= SAID


@pytest.mark.parametrize(
    "text",
    ["a" * 60_000 + "接" * 9000, "auth:" * 12_000 + '"', "auth: x" * 9000 + '"', "token:x," * 9000],
)
def test_hostile_texts_are_read_soon(text: str) -> None:
    began = time.process_time()
    assert len(sentences(text)) <= SAID + 1
    beginning(text)
    assert time.process_time() - began < 3  # seconds: the square of the length takes more


@pytest.mark.parametrize("place", [SAID - 30, SAID - 20, SAID - 10, READ - 20, READ - 10])
@pytest.mark.parametrize("secret", [f"http://bob:{SECRET}@host/", f"token={SECRET}", SECRET])
def test_no_part_of_a_secret_is_left_where_a_text_is_cut(place: int, secret: str) -> None:
    before = ("word " * READ)[: place - place % 5]
    assert "hunter" not in beginning(f"{before}{secret} {'more ' * READ}").replace(SECRET, "")
    line = f"{'x' * (place + READ)} {secret} {'y' * (READ - place)}\nlast"
    assert "hunter" not in ending(line, READ).replace(SECRET, "")


def test_the_end_of_a_text() -> None:
    assert ending("first\nlast \n", 300) == "first\nlast"
    assert ending("first\nlast", 3) == "ast"
    assert ending(f"password={SECRET}", 10) == "word=***"[-10:] or "***"
    assert ending(f"Authorization: Bearer {SECRET}{'1' * 290}", 300).endswith("***")
    assert ending("x" * 10**6, 300) == TOO_LONG
    assert ending("x" * 10**6 + "\nlast", 300) == "last"


def test_a_key_of_which_only_the_end_is_read() -> None:
    text = "\n".join([*KEY, "last"])
    assert ending(text, READ) == "-----END PRIVATE KEY-----\nlast"


def test_an_output_that_is_not_long_is_shown_whole() -> None:
    lines = [f"line {number}" for number in range(9)]
    assert outline(lines) == lines
    assert outline([]) == []
    assert outline(["a", *KEY[:9], KEY[-1], "b"]) == ["a", f"{KEY[0]}***{KEY[-1]}", "b"]


def test_of_a_long_output_the_first_and_the_last_lines_are_shown() -> None:
    lines = [f"line {number:06} token={SECRET}" for number in range(100_000)]
    began = time.process_time()
    shown = outline(lines)
    assert time.process_time() - began < 5, "it took 15 s"
    assert shown[0] == "line 000000 token=***"
    assert shown[-1] == "line 099999 token=***"
    note = next(line for line in shown if "left out" in line)
    assert note == f"({100_000 - len(shown) + 1} lines left out)"
    assert sum(map(len, shown)) < 2 * READ


def test_the_rest_of_a_key_is_not_among_the_last_lines() -> None:
    shown = outline(["first", *KEY, *KEY, "last"])
    assert shown[0] == "first"
    assert shown[-2:] == ["-----END PRIVATE KEY-----", "last"]
    assert not [line for line in shown if line == SECRET]


def test_a_long_line_is_cut() -> None:
    (shown,) = outline([f"x password={SECRET} " + "y " * 10**6])
    assert shown == "x password=***"
    (shown,) = outline(["y " * 10**6])
    assert len(shown) <= LONGEST_LINE
    assert outline(["x" * 10**6] * 3) == [TOO_LONG] * 3
