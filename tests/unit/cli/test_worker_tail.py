"""The end of what a worker printed, which goes into a report: no part of a secret."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpufleet.cli.workers import TAIL, WINDOW, tail_of

SECRET = "Hunter2Plant"
KEY = "-----BEGIN OPENSSH PRIVATE KEY-----\n" + f"{SECRET * 5}\n" * 100


@pytest.mark.parametrize(
    "text",
    [
        "x" * 5000 + f" ssh_password={SECRET} " + "y" * (TAIL - 15),
        "x" * 5000 + f" https://fleet:{SECRET}@mirror/ " + "y" * (TAIL - 15),
        "x" * WINDOW + f"ssh_password={SECRET * 500}",
        f"ssh_password={SECRET * 9000}",
        KEY,
        "x" * WINDOW + KEY,
        "-----BEGIN PRIVATE KEY-----\n" + "y" * TAIL + SECRET,
    ],
)
def test_no_part_of_a_secret_is_in_it(tmp_path: Path, text: str) -> None:
    log = tmp_path / "log"
    for ending in ("", "\n", "\nThe end\n"):
        log.write_text(text + ending)
        found = tail_of(log)
        assert SECRET not in found
        assert len(found) <= TAIL
        if "PRIVATE KEY" not in text:  # one without its end goes on
            assert found.endswith(ending.strip())


def test_it_is_visible_and_follows_the_log(tmp_path: Path) -> None:
    log = tmp_path / "log"
    assert tail_of(log) == ""
    log.write_bytes(b"one\n\x1b[2Jtwo\n")
    assert tail_of(log) == "one\n\\x1b[2Jtwo"
    with log.open("a") as file:
        file.write("three\n")
    assert tail_of(log).endswith("two\nthree")


def test_a_log_that_does_not_change_is_read_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Progress looks at it four times a second."""
    log = tmp_path / "log"
    log.write_text("one\n")
    tail_of(log)
    monkeypatch.delattr(Path, "open")
    assert tail_of(log) == "one"
