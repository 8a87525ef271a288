"""The ratchet of sentences: it finds marks, and no room is over its limit."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts.sentences import MARKS, document_texts, main, marked_texts, python_texts, room_of


@pytest.mark.parametrize(
    ("text", "mark"),
    [
        ("What the host has.", "what as noun"),
        ("Waits where another run holds the lock.", None),
        ("Waits where there is another run.", "where for if"),
        ('The version; "" if unknown', "sentinel"),
        ("Those of the catalog.", "fragment"),
        ("True if the host has a GPU.", None),
    ],
)
def test_a_mark_is_found(tmp_path: Path, text: str, mark: str | None) -> None:
    path = tmp_path / "page.md"
    path.write_text(text + "\n")
    ((_, names),) = marked_texts(path)
    assert mark in names if mark else names == []


def test_texts_are_docstrings_comments_and_paragraphs() -> None:
    source = (
        '"""Module."""\nx = 1  # short one\n# a comment of more than five words\ny = "no text"\n'
    )
    assert list(python_texts(source)) == ["Module.", "a comment of more than five words"]
    page = "One.\n\n```\ncode\n```\n\n| a |\n| b |\n\nTwo\nlines.\n"
    assert [text for text in document_texts(page) if text.strip()] == [
        *("One.", "| a |", "| b |", "Two\nlines.\n")
    ]


def test_a_room_is_two_folders_deep() -> None:
    assert room_of("gpufleet/driver/data/x.py") == "gpufleet/driver"
    assert (room_of("docs/how-to/a.md"), room_of("README.md")) == ("docs/how-to", "README.md")


def test_no_room_is_over_its_limit(capsys: pytest.CaptureFixture[str]) -> None:
    assert MARKS
    assert main([]) == 0, capsys.readouterr().out
