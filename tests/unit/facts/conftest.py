"""A host made of files, and the POSIX shells that run the facts command on it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from fakehost import FakeHost

SHELLS = {
    "dash": ("dash",),
    "bash": ("bash", "--posix"),
    "busybox": ("busybox", "sh"),
}


@pytest.fixture(params=SHELLS)
def shell(request: pytest.FixtureRequest) -> tuple[str, ...]:
    command = SHELLS[request.param]
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is not installed here")
    return command


@pytest.fixture
def host(tmp_path: Path) -> FakeHost:
    return FakeHost(tmp_path / "host")
