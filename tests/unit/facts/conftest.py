"""A host made of files, and the POSIX shells that run the facts command on it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from fakehost import FakeHost

from tests.selection import some

SHELLS = {
    "dash": ("dash",),
    "bash": ("bash", "--posix"),
    "busybox": ("busybox", "sh"),
}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Every shell for test_gather.py; for the others only dash, the strictest, in `make test`."""
    if "shell" in metafunc.fixturenames:
        every = metafunc.module.__name__.endswith("test_gather")
        shells = list(SHELLS) if every else some(SHELLS, ["dash"])
        metafunc.parametrize("shell", shells, indirect=True)


@pytest.fixture
def shell(request: pytest.FixtureRequest) -> tuple[str, ...]:
    command = SHELLS[request.param]
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is not installed here")
    return command


@pytest.fixture
def host(tmp_path: Path) -> FakeHost:
    return FakeHost(tmp_path / "host")
