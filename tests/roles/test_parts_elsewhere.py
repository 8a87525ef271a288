"""Parts of a run on workers of a real Dask scheduler, on loopback."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from parts import Controlled, hosts, is_alive, report, run, waiting_worker

from gpufleet.cli import scheduled
from gpufleet.cli.deploy import Place
from gpufleet.cli.shard_request import request_of
from gpufleet_sandbox.waiting import wait_until

# The first process that loads it kills its parent, which is a worker of the scheduler.
INVENTORY = """
import os, signal
try:
    with open("killed", "x") as file:
        file.write(str(os.getpid()))
    os.kill(os.getppid(), signal.SIGKILL)
except FileExistsError:
    pass
closed = {"ssh_hostname": "127.0.0.1", "ssh_port": 1}
gpu_nodes = [(name, closed) for name in ("a", "b", "c")]
"""


@pytest.mark.extended
def test_a_scheduler_runs_the_shard_of_a_dead_worker_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Real pyinfra, which reaches no host."""
    from distributed import LocalCluster

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GPUFLEET_REPORT", str(tmp_path / "report.json"))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    Path("inv.py").write_text(INVENTORY)
    with LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None,
        host="127.0.0.1", local_directory=str(tmp_path / "dask"),
    ) as cluster:  # fmt: skip
        place = Place(2, cluster.scheduler_address)
        targets = hosts("a", "b", "c")
        assert run(request_of("inv.py", targets, targets, (), place)) == 1
    assert wait_until(lambda: not is_alive(int(Path("killed").read_text())), 10)
    found = report(tmp_path)["hosts"]
    codes = {name: [each["code"] for each in host["findings"]] for name, host in found.items()}
    assert codes == {"a": ["GF005"], "b": ["GF005"], "c": ["GF005"]}


class Dask:
    """A scheduler and a worker of it, whose pyinfra is the fake."""

    def __init__(self, fake: str, folder: Path) -> None:
        file = folder / "scheduler.json"
        here = ("--host", "127.0.0.1", "--no-dashboard", "--scheduler-file", str(file))
        self.scheduler = self._start("scheduler", *here, "--port", "0")
        assert wait_until(file.exists, 60)
        self.address = str(json.loads(file.read_text())["address"])
        rest = ("--no-nanny", "--nthreads", "1", "--local-directory", str(folder))
        self.worker = self._start("worker", *here, *rest, PYTHONPATH=fake)

    def _start(self, *words: str, **environment: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-m", "dask", *words], env={**os.environ, **environment},
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip

    def end(self) -> None:
        for process in (self.worker, self.scheduler):
            process.kill()
            process.wait(30)


@pytest.fixture
def dask(controlled: Controlled, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dask]:
    from distributed import Client

    found = Dask(controlled.fake, tmp_path_factory.mktemp("dask"))
    with Client(found.address, set_as_default=False) as client:
        client.wait_for_workers(1, timeout=60)
    yield found
    found.end()


@pytest.mark.extended
@pytest.mark.parametrize("who", ["run", "worker"])
def test_a_part_ends_in_order_without_the_run_or_its_worker(
    controlled: Controlled, dask: Dask, who: str
) -> None:
    process = controlled.start("slow", scheduler=dask.address)
    (process if who == "run" else dask.worker).kill()
    assert wait_until(Path("stopped").exists, 30)
    assert wait_until(lambda: not is_alive(waiting_worker()), 10)


@pytest.mark.extended
def test_signals_end_parts_elsewhere_and_a_run_whose_scheduler_hangs(
    controlled: Controlled, dask: Dask
) -> None:
    process = controlled.start("slow", scheduler=dask.address)
    process.send_signal(signal.SIGTERM)
    assert process.wait(120) == 143
    assert Path("stopped").exists()
    assert report(Path())["hosts"]["slow"]["status"] == "not reached"
    Path("waits").unlink()
    process = controlled.start("slow", scheduler=dask.address)
    dask.scheduler.send_signal(signal.SIGSTOP)
    process.send_signal(signal.SIGINT)
    assert process.stderr
    assert "Ctrl+C ends them at once" in process.stderr.readline()
    process.send_signal(signal.SIGINT)
    assert process.wait(120) == 130


def test_a_scheduler_that_is_not_there_is_wrong_usage(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scheduled, "ANSWER", 1)
    with pytest.raises(click.UsageError, match=r"No scheduler at tcp://127\.0\.0\.1:1"):
        scheduled.Scheduled("tcp://127.0.0.1:1")
