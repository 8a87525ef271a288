"""A finding in one line: what is wrong, then what to do, each a sentence."""

from __future__ import annotations

import pytest

from gpufleet.core.findings import Kind, Severity


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("No kubeconfig: {why}", "No kubeconfig: no file exists. Name one."),
        ("No kubeconfig ({why}).", "No kubeconfig (no file exists). Name one."),
    ],
)
def test_a_remedy_follows_a_finished_sentence(message: str, shown: str) -> None:
    kind = Kind("GF999", Severity.BLOCKER, "Title", message, "Name one.")
    assert kind(why="no file exists").sentences == shown
