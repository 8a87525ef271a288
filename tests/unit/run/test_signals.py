"""A signal ends a run wherever it arrives."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

PROGRAM = """
import os, signal, sys, time, weakref
import pyinfra
pyinfra.is_cli = True
from pyinfra.api import State
from gpufleet.run.reporting import RunReport

class Thing: pass

def finalizer(_):
    os.kill(os.getpid(), signal.{name})  # its handler runs here, and what it raises is ignored
    sum(range(1000))

class Reported(RunReport):
    def abandon(self): print("abandoned", flush=True)
    def finish(self, *_, **more):
        print("closed", flush=True)
        os._exit(self.interrupted)

sys.argv = ["pyinfra", "inv", "x.py"]
Reported.begin(State())
thing = Thing()
watched = weakref.ref(thing, finalizer)
del thing
print("still there", flush=True)
while True:
    time.sleep(1)
"""


@pytest.mark.parametrize(("name", "status"), [("SIGINT", 130), ("SIGTERM", 143)])
def test_also_where_python_ignores_exceptions(name: str, status: int) -> None:
    program = PROGRAM.replace("{name}", name)
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=100
    )
    assert done.returncode == status, done.stderr
    assert done.stdout.split("\n")[:3] == ["abandoned", "closed", ""]
    assert "ignored" not in done.stderr


def test_also_where_nobody_reads_standard_error_any_more() -> None:
    """Else the run would continue to change hosts."""
    program = PROGRAM.replace("{name}", "SIGTERM")
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=writer, text=True,
        check=False, timeout=100,
    )  # fmt: skip
    os.close(writer)
    assert done.returncode == 143
    assert done.stdout.split("\n")[:3] == ["abandoned", "closed", ""]
