"""The identity of a run, which other users see: user name, host name and a random number."""

from __future__ import annotations

import os
import re

import pytest

from gpufleet.core import identity


def test_any_name_is_written_as_facts_show_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A host reports only printable ASCII, so an identity with other text would never match."""
    monkeypatch.setattr(identity.getpass, "getuser", lambda: "J\u00fcrgen\n\x1b")
    assert re.fullmatch(r"J\?rgen\?\?@[ -~]+ \[[0-9a-f]{16}\]", identity.new_identity())


@pytest.mark.parametrize("error", [KeyError, OSError])
def test_a_user_without_a_name_has_a_number(
    error: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    def getuser() -> str:
        raise error("getpwuid(): uid not found: 1234")

    monkeypatch.setattr(identity.getpass, "getuser", getuser)
    assert identity.new_identity().startswith(f"user {os.getuid()}@")


def test_no_two_are_alike() -> None:
    assert identity.new_identity() != identity.new_identity()
