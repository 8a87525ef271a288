"""A host that is busy is frozen after some tries; another failure is reported at once."""

from __future__ import annotations

import subprocess
from types import SimpleNamespace
from typing import Any

import pytest

from gpufleet_sandbox.errors import SandboxError
from gpufleet_sandbox.faults import FREEZES, Frozen

BUSY = "Error: `runc pause x` failed: unable to freeze"


class Busy:
    """A host whose first tries fail."""

    def __init__(self, fails: int, why: str) -> None:
        self.fails, self.why = fails, why
        self.tries = 0
        self.is_paused = False
        self.state = SimpleNamespace(container="one")

    def engine(self, *words: str, check: bool) -> subprocess.CompletedProcess[str]:
        assert (words, check) == (("pause", "one"), False)
        self.tries += 1
        self.is_paused = self.tries > self.fails
        status = int(not self.is_paused)
        return subprocess.CompletedProcess(words, status, "", self.why if status else "")


@pytest.mark.parametrize("fails", [0, 1, FREEZES - 1])
def test_a_busy_host_is_frozen_after_some_tries(fails: int) -> None:
    host: Any = Busy(fails, BUSY)
    Frozen().on(host)
    assert (host.is_paused, host.tries) == (True, fails + 1)


@pytest.mark.parametrize(("why", "tries"), [(BUSY, FREEZES), ("no such container", 1)])
def test_what_is_not_frozen_is_reported(why: str, tries: int) -> None:
    host: Any = Busy(FREEZES, why)
    with pytest.raises(SandboxError, match=why.rpartition(": ")[2]):
        Frozen().on(host)
    assert host.tries == tries
