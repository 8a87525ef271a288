"""Runs in parts, one process each: their reports, the options they refuse, how they end."""

from __future__ import annotations

import json
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import pytest

from gpufleet.cli import parts
from gpufleet.cli.deploy import Confirmation
from gpufleet.cli.parts import PartsRequest, run_in_parts
from gpufleet.cli.pyinfra_options import parse_options
from gpufleet.run import part, whole_run
from gpufleet.run.part import HostPart, run_part
from gpufleet.verify.inventory import Target
from gpufleet_sandbox.waiting import wait_until

FAKE = Path(__file__).with_name("part_fake.py")
ENOUGH = 30  # seconds: on a busy machine, a peer is refused within them if it is not a scheduler


class Site:
    """A fleet whose parts are processes of part_fake.py in this folder."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self._patch = folder, monkeypatch

    def run(
        self, *names: str, workers: int = 2, options: tuple[str, ...] = (), command: str = "apply",
        ask: Confirmation | None = None, scheduler: str = "", cluster: str = "",
    ) -> int:  # fmt: skip
        """Run these hosts in parts, and return the exit status."""
        targets = [Target(name, ("gpu_nodes",), {}) for name in names]
        targets += [Target(cluster, ("gpu_cluster",), {})] if cluster else []
        self._patch.setattr(parts, "choose_targets", lambda inventory, limit: (targets, targets))
        with pytest.raises(SystemExit) as ended:
            run_in_parts(PartsRequest("inv.py", (), options, workers, scheduler), command, ask)
        return int(ended.value.code or 0)

    @property
    def report(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.folder / "report.json").read_text())
        return found

    @property
    def states(self) -> dict[str, str]:
        return {name: host["status"] for name, host in self.report["hosts"].items()}

    def codes(self, name: str) -> list[str]:
        return [finding["code"] for finding in self.report["hosts"][name]["findings"]]

    @property
    def trace(self) -> list[str]:
        path = self.folder / "trace"
        return sorted(path.read_text().splitlines()) if path.exists() else []


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    fake = f"import runpy; runpy.run_path({str(FAKE)!r}, run_name='__main__')"
    monkeypatch.setattr(part, "GPUFLEET", fake)
    monkeypatch.setattr(whole_run, "exit_process", lambda status: pytest.fail("ended at once"))
    monkeypatch.setattr("gpufleet.run.lifecycle.exit_process", lambda status: None)
    monkeypatch.setenv("GPUFLEET_REPORT", str(tmp_path / "report.json"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return Site(tmp_path, monkeypatch)


def test_every_host_is_in_one_report(
    site: Site, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GPUFLEET_JUNIT", str(site.folder / "junit.xml"))
    assert site.run("a", "b", "c", options=("--sudo", "--data", "x=1")) == 0
    assert site.states == dict.fromkeys(("a", "b", "c"), "converged")
    assert (site.report["exit_status"], site.report["completed"]) == (0, True)
    assert site.trace == ["apply a -- --sudo --data x=1", "apply b c -- --sudo --data x=1"]
    assert "3 hosts: 0 changed, 3 with no changes, 0 failed" in capsys.readouterr().out
    assert (site.folder / "junit.xml").read_text().count("<testcase ") == 3
    assert not list(site.folder.glob("gpufleet-*"))


def test_clusters_and_what_ssh_does_not_reach_are_run_on_at_the_end(site: Site) -> None:
    assert site.run("@local", "a", "@docker/x", "@ssh/c", cluster="lab", workers=1) == 0
    assert site.trace == ["apply @local @docker/x lab --", "apply a @ssh/c --"]
    assert list(site.states) == ["@local", "a", "@docker/x", "@ssh/c", "lab"]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("dies", "status -9. It printed last: at work"),
        ("raises", "status 1. It printed last: NameError"),
        ("mute", "status 1. It printed last: Error: no such thing"),
        ("forgotten", "does not have this host"),
    ],
)
def test_a_part_without_a_result_costs_its_own_hosts(
    site: Site, capsys: pytest.CaptureFixture[str], name: str, said: str
) -> None:
    assert site.run("a", name) == 1
    assert site.states == {"a": "converged", name: "not reached"}
    assert site.codes(name) == ["GF013"]
    assert said in site.report["hosts"][name]["findings"][0]["message"]
    logs = Path(capsys.readouterr().err.rpartition("a host failed: ")[2].strip())
    assert "at work\x1b[2J" in (logs / f"{name}.log").read_text()
    assert logs.stat().st_mode & 0o777 == 0o700
    assert [path.name for path in logs.iterdir()] == [f"{name}.log"]


def test_a_part_elsewhere_needs_the_same_version_and_folder(tmp_path: Path) -> None:
    other = run_part(HostPart(("a",), ("apply", "i.py"), str(tmp_path), version="0"))
    assert "this run is of 0" in other.output
    assert "missing" in run_part(HostPart(("a",), ("plan",), str(tmp_path / "missing"))).output


def test_the_budget_counts_all_hosts_and_ends_the_run_before_further_parts(
    site: Site, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(whole_run, "MAX_PART_HOSTS", 1)
    names = ("bad", "a", "b", "c")
    assert site.run(*names, workers=1, options=("--fail-percent", "20")) == 1
    assert list(site.states.values()) == ["failed", *["not reached"] * 3]
    assert site.codes("a") == ["GF006"]
    assert "GF014 1 of 4 hosts failed" in capsys.readouterr().err
    assert site.run(*names, workers=1, options=("--fail-percent=25",)) == 1
    assert site.states["c"] == "converged"
    assert site.trace[-1].endswith("-- --fail-percent=25 --fail-percent 100")


def test_the_plan_is_shown_before_the_question(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "require_confirmation", lambda yes, options: None)
    monkeypatch.setattr(click, "confirm", lambda *_, **__: None)
    assert site.run("a", workers=1, ask=Confirmation("Sure?", ("preflight",))) == 0
    assert site.trace == ["apply a --", "plan a --"]
    assert site.run("a", command="plan") == 0
    assert site.report["dry"] is True
    assert site.run("a", ask=Confirmation("Sure?", ()), options=("--dry",)) == 0
    assert site.trace[1:] == ["apply a -- --dry", "plan a --", "plan a --"]


@pytest.fixture
def waiting(site: Site) -> Iterator[Callable[..., None]]:
    """Sends this process signals once a part waits."""
    threads: list[threading.Thread] = []

    def send(*numbers: int) -> None:
        assert wait_until((site.folder / "waits").exists, 60)
        for number in numbers:
            os.kill(os.getpid(), number)
            time.sleep(0)

    def start(*numbers: int) -> None:
        threads.append(threading.Thread(target=send, args=numbers, daemon=True))
        threads[-1].start()

    yield start
    for thread in threads:
        thread.join(60)


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_parts_in_order(
    site: Site, waiting: Callable[..., None], number: int, status: int
) -> None:
    before = signal.getsignal(number)
    waiting(number)
    assert site.run("slow", "a", workers=1, cluster="lab") == status
    assert list(site.states.values()) == ["not reached"] * 3
    assert site.codes("lab") == ["GF006"]
    assert signal.getsignal(number) == before


def test_a_second_signal_ends_all_at_once(
    site: Site, waiting: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    ended: list[int] = []
    monkeypatch.setattr(whole_run, "exit_process", ended.append)
    waiting(signal.SIGTERM, signal.SIGINT)
    assert site.run("deaf", "a") in (130, 143)
    assert len(ended) == 1
    assert site.codes("deaf") == ["GF013"]


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (("--limit", "a"), "use it before"),
        (("--exclude=a",), "use it before"),
        (("--chdir", "x"), "start gpufleet in that folder"),
        (("--serial",), "at the same time"),
        (("--ssh-password", "secret"), "set it in the inventory"),
        (("--ssh-key-password", "secret"), "set it in the inventory"),
        (("--sudo", "-yvv"), "-v is not possible"),
        (("--debug-facts",), "--debug-facts is not possible"),
        (("--same-sudo-password",), "asks"),
        (("--fail-percent", "x"), "not a valid integer"),
        (("--sudo", "--version"), "No such option"),
        (("other.py",), "unexpected extra argument"),
    ],
)
def test_options_that_make_no_sense_are_refused(options: tuple[str, ...], why: str) -> None:
    with pytest.raises(click.UsageError, match=why):
        run_in_parts(PartsRequest("inv.py", (), options, 2), "plan")


def test_nodes_that_join_in_one_run_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    control = Target("cp", ("control_plane", "gpu_nodes"), {})
    monkeypatch.setattr(parts, "choose_targets", lambda inventory, limit: ([control], []))
    with pytest.raises(click.UsageError, match="join in one run"):
        run_in_parts(PartsRequest("inv.py", (), (), 2), "plan")


def test_options_are_parsed_as_pyinfra_does() -> None:
    words = ["-yvv", "--data", "x=1", "--data=y=2", "--key", "k", "--retry", "3"]
    assert parse_options(words) == {
        "--yes": 1, "-v": 2, "--data": ("x=1", "y=2"), "--ssh-key": ("k",), "--retry": (3,),
    }  # fmt: skip


@pytest.mark.parametrize("says", [b"", b"SSH-2.0-OpenSSH_9.6\r\n"], ids=["silent", "SSH"])
def test_what_is_no_scheduler_is_refused_in_time(
    site: Site, says: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts, "SCHEDULER_SECONDS", 1)
    kept: list[socket.socket] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answers() -> None:
            connection, _ = server.accept()
            kept.append(connection)
            connection.sendall(says)

        threading.Thread(target=answers, daemon=True).start()
        began = time.monotonic()
        address = f"tcp://127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(click.UsageError, match="No scheduler at"):
            site.run("a", scheduler=address)
        assert time.monotonic() - began < ENOUGH
    for connection in kept:
        connection.close()


@pytest.mark.extended
def test_parts_run_on_a_dask_cluster(site: Site) -> None:
    """The workers are separate processes of the real gpufleet, which reach no host."""
    from distributed import LocalCluster

    closed = {"ssh_hostname": "127.0.0.1", "ssh_port": 1}
    Path("inv.py").write_text(f"gpu_nodes = [(name, {closed!r}) for name in 'abc']")
    with LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None,
        host="127.0.0.1", local_directory=str(site.folder / "dask"),
    ) as cluster:  # fmt: skip
        assert site.run("a", "b", "c", scheduler=cluster.scheduler_address) == 1
    assert {name: site.codes(name) for name in "abc"} == {name: ["GF005"] for name in "abc"}
