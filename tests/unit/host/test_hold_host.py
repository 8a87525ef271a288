"""The script that holds a host's lock, in a real shell, on a file of the test."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyinfra.api import QuoteString, StringCommand

from gpufleet.facts.model import RUN_LOCK
from gpufleet.host.lock import as_step

SCRIPT = Path("gpufleet/host/scripts/hold_host.sh")
HOLDER = SCRIPT.with_name("host_holder.sh")


@pytest.mark.parametrize(
    ("inside", "said"),
    [
        ("alice [1]", "."),
        ("carol [3]", "."),  # this run's earlier process had it, and has ended
        ("bob [2]", "changed bob [2]"),
        ("", "changed "),
    ],
)
def test_it_is_acquired_if_unused_since(inside: str, said: str, tmp_path: Path) -> None:
    """A run that takes over the lock of a killed run removes the files which that run sent. Files
    of this run, and of the run that holds the lock, stay."""
    lock, incoming = tmp_path / "lock", tmp_path / "incoming"
    lock.write_text(f"{inside}\n")
    incoming.mkdir()
    (incoming / "20261125T085348.813588Z-32503.yaml").write_text("token: abcdef.0123456789abcdef")
    with subprocess.Popen(
        ["sh", SCRIPT, lock, "alice [1]", "carol [3]", incoming], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout
        line = process.stdout.readline()
        process.kill()
    assert line == f"{said}\n"
    assert lock.read_text().strip() == ("carol [3]" if said == "." else inside)
    assert incoming.is_dir()
    assert bool(list(incoming.iterdir())) is (inside != "alice [1]")


@contextmanager
def step(lock: Path, shell: str) -> Iterator[subprocess.Popen[str]]:
    """A step in a shell that runs until it is stopped, and starts a daemon that outlives it."""
    commands = "sleep 60 >&- 2>&- & echo $!; read -r line"
    step = as_step(StringCommand("sh", "-c", QuoteString(commands)))
    assert isinstance(step, StringCommand)
    words = [shell, "-c", step.get_raw_value().replace(RUN_LOCK, str(lock))]
    with subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout
        daemon = int(process.stdout.readline())
        try:
            yield process
        finally:
            os.kill(daemon, signal.SIGTERM)


@pytest.mark.parametrize("shell", ["sh", "bash"])
def test_a_step_that_goes_on_keeps_others_out_and_a_daemon_does_not(
    shell: str, tmp_path: Path
) -> None:
    lock = tmp_path / "lock"
    lock.write_text("alice [1]\n")
    words = ["sh", SCRIPT, lock, "alice [1]", "carol [3]"]

    def holder() -> str:
        return subprocess.run(
            ["sh", HOLDER, lock], capture_output=True, text=True, check=True
        ).stdout.strip()

    with step(lock, shell) as process:
        assert holder() == "alice [1]"
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout) == (1, "held alice [1]\n")
        process.communicate("go on\n")
        assert process.returncode == 0
        assert holder() == ""
        with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as taking:
            assert taking.stdout
            assert taking.stdout.readline() == ".\n"
            taking.kill()


def test_a_step_keeps_its_exit_status_and_what_it_is_given(tmp_path: Path) -> None:
    step = as_step(StringCommand("cat; exit 7", _stdin=["text"]))
    assert isinstance(step, StringCommand)
    assert step.connector_arguments == {"_stdin": ["text"]}
    text = step.get_raw_value().replace(RUN_LOCK, str(tmp_path / "lock"))
    done = subprocess.run(
        ["sh", "-c", text], input="text", capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (7, "text")
