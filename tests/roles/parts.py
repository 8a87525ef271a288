"""Runs on several workers whose pyinfra is a fake: worker_fake.py."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from gpufleet.cli.deploy import Place, Question
from gpufleet.cli.shard_request import Request, request_of
from gpufleet.cli.sharded_run import run_sharded
from gpufleet.verify.inventory import Target
from gpufleet_sandbox.waiting import wait_until

FAKE = Path(__file__).with_name("worker_fake.py")


def site_in(tmp_path: Path, fake: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make `tmp_path` the folder in which workers leave a trace, and where the report goes;
    `fake` the one that has pyinfra."""
    shutil.copy(FAKE, fake / "pyinfra.py")
    before = os.environ.get("PYTHONPATH")  # of a copy of the project whose tests run
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, (str(fake), before))))
    monkeypatch.setenv("GPUFLEET_REPORT", str(tmp_path / "report.json"))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return tmp_path


CONTROLLER = """
import os, sys
from gpufleet.cli.deploy import Place
from gpufleet.cli.shard_request import request_of
from gpufleet.cli.sharded_run import run_sharded
from gpufleet.verify.inventory import Target
os.environ["PYTHONPATH"], scheduler, *names = sys.argv[1:]
hosts = [Target(name, ("gpu_nodes",), {}) for name in names]
place = Place(2, scheduler)
run_sharded(request_of("inv.py", hosts, hosts, (), place), lambda _: ["gpu_node"], None)
"""


class Controlled:
    """Runs that are processes of their own. `fake`: the folder that has pyinfra."""

    def __init__(self, fake: str) -> None:
        self.fake = fake
        self.processes: list[subprocess.Popen[str]] = []

    def start(self, *names: str, scheduler: str = "", **streams: Any) -> subprocess.Popen[str]:
        """A run of which a worker waits."""
        words = [sys.executable, "-c", CONTROLLER, self.fake, scheduler, *names]
        streams = streams or {"stderr": subprocess.PIPE, "stdout": subprocess.DEVNULL}
        self.processes.append(subprocess.Popen(words, text=True, **streams))
        assert wait_until(Path("waits").exists, 300)
        return self.processes[-1]

    def end(self) -> None:
        for process in self.processes:
            process.kill()
            process.wait(30)
        if Path("waits").exists() and is_alive(worker := waiting_worker()):
            os.kill(worker, signal.SIGKILL)
        for process in self.processes:
            if process.stderr:
                process.stderr.close()


def hosts(*names: str) -> list[Target]:
    return [Target(name, ("gpu_nodes",), {}) for name in names]


def requested(*names: str, workers: int = 2, options: tuple[str, ...] = ()) -> Request:
    return request_of("inv.py", hosts(*names), hosts(*names), options, Place(workers))


def run(request: Request, ask: Question | None = None) -> int:
    """The exit status."""
    with pytest.raises(SystemExit) as ended:
        run_sharded(request, lambda _: ["gpu_node"], ask)
    return int(str(ended.value.code if ended.value.code is not None else 0))


def report(site: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((site / "report.json").read_text())
    return found


def states(site: Path) -> dict[str, str]:
    return {name: part["status"] for name, part in report(site)["hosts"].items()}


def runs_of(site: Path, name: str) -> int:
    return len(list(site.glob(f"{name}.*")))


def kept(err: str) -> Path:
    """The folder that is named as the one with the workers' output."""
    return Path(err.rpartition("Output of the workers: ")[2].splitlines()[0])


def waiting_worker() -> int:
    """The process of a worker that waits for a signal."""
    return int(Path("waits").read_text())


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except (ProcessLookupError, FileNotFoundError):
        return False
