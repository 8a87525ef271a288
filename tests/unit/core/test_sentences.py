"""A finding in one line: a sentence about the problem, then a sentence with the remedy."""

from __future__ import annotations

import pytest

from gpufleet.core.findings import Finding, Severity


@pytest.mark.parametrize("message", ["No kubeconfig: no file exists", "No kubeconfig."])
def test_a_remedy_follows_a_finished_sentence(message: str) -> None:
    found = Finding("GF999", Severity.BLOCKER, message, "Name one.")
    assert found.sentences == f"{message.rstrip('.')}. Name one."
