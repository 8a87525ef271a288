"""Addresses at which there is no scheduler."""

from __future__ import annotations

import click
import distributed
import pytest

from gpufleet.cli.scheduled import Scheduled


@pytest.mark.parametrize("address", ["junk", "inproc://1", "tls://127.0.0.1:1", "x://a:1\x1b[2J"])
def test_no_client_begins_whose_end_prints_a_traceback(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(distributed, "Client", lambda *_, **__: pytest.fail("a client"))
    with pytest.raises(click.UsageError, match="No scheduler at") as found:
        Scheduled(address)
    assert found.value.message.isprintable()
