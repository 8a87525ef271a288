"""Find secrets in processes and files of this machine during a run."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Timer
from typing import Any

import pytest

from tests.planting.marks import Marks, shown

LONGEST = 300  # seconds until the control process is found
LARGEST = 4_000_000  # bytes; larger files are skipped
OURS = Path(__file__).parents[2]
NAMES = ("gpufleet", "pyinfra", "gfv")  # prefixes of a run's temporary files


@dataclass(slots=True)
class Seen:
    """Result of a watcher: [secret, cmdline or environ, command line]; checked processes."""

    secrets: list[list[str]] = field(default_factory=list)
    processes: int = 0


@contextmanager
def watching(patterns: Mapping[str, str]) -> Iterator[Seen]:
    """Watch all processes during the `with` block; the result is complete at its end.

    A control process reveals a secret at the end, and ends once it is found.
    """
    seen, own = Seen(), Marks("watcher")
    known = {**patterns, own["control"]: "control"}
    watcher = Path(__file__).with_name("watcher.py")
    process = subprocess.Popen(
        [sys.executable, str(watcher)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin
    assert process.stdout
    with process:
        process.stdin.write(json.dumps(known))
        process.stdin.close()
        assert process.stdout.readline() == "ready\n"
        secrets: list[Any] = []
        try:
            yield seen
            secrets = _until_control(process, own["control"])
        finally:
            process.terminate()
            *rest, processes = (json.loads(line) for line in process.stdout)
    secrets += rest
    seen.secrets = [each for each in secrets if each[0] != "control"]
    seen.processes = processes


def _until_control(watcher: subprocess.Popen[str], secret: str) -> list[Any]:
    """The secrets that the watcher found before it found the control process."""
    assert watcher.stdout
    secrets: list[Any] = []
    late = Timer(LONGEST, watcher.kill)
    late.start()
    with subprocess.Popen(["sh", "-c", "read -r _; exit", secret], stdin=subprocess.PIPE):
        for line in watcher.stdout:
            secrets.append(json.loads(line))
            if secrets[-1][0] == "control":
                late.cancel()
                return secrets
    raise AssertionError("nothing was watched")


def home_apart(folder: Path, patch: pytest.MonkeyPatch) -> Path:
    """Create a separate home and TMPDIR for a run, below `folder`. Returns the home."""
    home = folder / "home"
    places = {"TMPDIR": "tmp", "XDG_CONFIG_HOME": "config", "XDG_STATE_HOME": "state"}
    for name, part in {"HOME": "", "XDG_DATA_HOME": "data", **places}.items():
        place = home / part
        place.mkdir(exist_ok=True, parents=True)
        patch.setenv(name, str(place))
    return home


def files_that_show(patterns: dict[str, str], home: Path, since: float) -> list[str]:
    """Files with a secret that a run wrote after `since` to `home`, this checkout or /tmp."""
    found = []
    folders = [
        home,
        *OURS.glob("[a-z]*"),
        *(path for name in NAMES for path in Path("/tmp").glob(f"{name}*")),
    ]
    for path in (each for folder in folders for each in (folder, *folder.rglob("*"))):
        try:
            state = path.lstat()
            if not path.is_file() or state.st_mtime < since or state.st_size > LARGEST:
                continue
            names = shown(patterns, [path.read_text(errors="replace")])
        except OSError:  # it was removed
            continue
        found += [f"{path}: {name}" for name in names]
    return found
