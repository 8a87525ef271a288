"""Parts of a run that are refused, killed or strange, among others that are not."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from concurrent.futures import Future
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import click
import pytest

from gpufleet.cli import sharded_run
from gpufleet.cli.deploy import Place
from gpufleet.cli.shard_request import request_of
from gpufleet.cli.sharded import TRIES, outcome_of
from gpufleet.cli.workers import Order
from gpufleet.run.report import HostReport, RunFacts, as_json
from gpufleet.run.shards import Outcome, Shard
from gpufleet.verify.inventory import Target

NOW = datetime(2026, 11, 25, tzinfo=timezone.utc)
REFUSED = Outcome(status=2, output="GF003 No inventory file i.py. Nothing was done.")
KILLED = Outcome(status=-9, output="Installing the driver")


def reported(name: str, status: Any = "changed") -> Outcome:
    bad = status == "failed"
    host = HostReport(name, status=status, failed=bad, changed=5, examined=True)
    facts = RunFacts("i.py", (), NOW, NOW, dry=False, exit_status=int(bad), completed=not bad)
    return Outcome(as_json([host], facts), int(bad))


class Answers:
    """Workers that have what each part comes to, at once."""

    def __init__(self, *outcomes: object, count: int = 0) -> None:
        self.outcomes = outcomes
        self.count = count or len(outcomes)
        self.begun: list[int] = []

    def submit(self, order: Order) -> Future[Outcome]:
        self.begun.append(order.shard.number)
        future: Future[Any] = Future()
        future.set_result(self.outcomes[order.shard.number - 1])
        return future

    def stop(self) -> None: ...

    kill = close = stop


Runs = Callable[[Answers], int]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Runs:
    """Returns the exit status."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setenv("GPUFLEET_REPORT", str(tmp_path / "report.json"))
    monkeypatch.setattr("gpufleet.run.shards.LARGEST", 1)

    def ended(answers: Answers) -> int:
        monkeypatch.setattr(sharded_run, "opened", lambda place: answers)
        hosts = [Target(f"h{n}", ("gpu_nodes",), {}) for n in range(1, len(answers.outcomes) + 1)]
        request = request_of("i.py", hosts, hosts, (), Place(answers.count))
        with pytest.raises(SystemExit) as found:
            sharded_run.run_sharded(request, lambda _: ["gpu_node"], None)
        return int(found.value.code or 0)

    return ended


def report(tmp_path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((tmp_path / "report.json").read_text())
    return found


def logs(tmp_path: Path) -> list[str]:
    return [path.read_text() for path in sorted(tmp_path.glob("gpufleet-workers-*/*"))]


def test_a_run_whose_every_part_is_refused_did_nothing(
    tmp_path: Path, run: Runs, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(Answers(REFUSED, REFUSED)) == 2
    said = capsys.readouterr()
    assert (said.out, said.err) == ("", REFUSED.output + "\n")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("other", "state"),
    [(reported("h1"), "changed"), (KILLED, "not reached"), (Outcome(), "not reached")],
)
def test_a_run_with_one_refused_part_has_its_report_and_failed(
    tmp_path: Path, run: Runs, capsys: pytest.CaptureFixture[str], other: Outcome, state: str
) -> None:
    assert run(Answers(other, REFUSED)) == 1
    said = capsys.readouterr()
    assert "run again\n" not in said.err
    assert "GF013 blocker h2" in said.out
    hosts = report(tmp_path)["hosts"]
    assert {name: host["status"] for name, host in hosts.items()} == {
        "h1": state, "h2": "not reached",
    }  # fmt: skip
    assert report(tmp_path)["exit_status"] == 1
    assert REFUSED.output + "\n" in logs(tmp_path)


def test_a_killed_part_that_has_no_next_try_is_not_said_to_be_unchanged(
    tmp_path: Path, run: Runs
) -> None:
    run(Answers(KILLED, REFUSED))
    (finding,) = report(tmp_path)["hosts"]["h1"]["findings"]
    assert finding["code"] == "GF013"
    assert "Installing the driver" in finding["message"]


def test_a_killed_part_runs_again_among_others(
    run: Runs, capsys: pytest.CaptureFixture[str]
) -> None:
    answers = Answers(KILLED, reported("h2"))
    assert run(answers) == 1
    assert answers.begun.count(1) == TRIES
    assert capsys.readouterr().err.count("its 1 host run again") == TRIES - 1


def test_a_run_with_a_failed_host_is_completed(tmp_path: Path, run: Runs) -> None:
    assert run(Answers(reported("h1"), reported("h2", "failed"))) == 1
    assert report(tmp_path)["completed"] is True
    assert run(Answers(reported("h1", "failed"), reported("h2", "failed"))) == 1
    assert report(tmp_path)["completed"] is False  # as in one process, which ends without hosts


@pytest.mark.parametrize("strange", ["garbage", None, Outcome(report=5), Outcome(status="1")])  # type: ignore[arg-type]
def test_a_strange_answer_ends_its_part_alone(tmp_path: Path, run: Runs, strange: object) -> None:
    assert run(Answers(reported("h1"), strange)) == 1
    hosts = report(tmp_path)["hosts"]
    assert hosts["h1"]["status"] == "changed"
    assert hosts["h2"]["findings"][0]["code"] == "GF013"


def test_an_answer_without_a_field_is_strange() -> None:
    future: Future[Outcome] = Future()
    future.set_result(object.__new__(Outcome))
    assert "something else" in outcome_of(future).problem


def test_output_that_is_no_text_ends_nothing(tmp_path: Path, run: Runs) -> None:
    assert run(Answers(reported("h1"), Outcome(status=1, output="\udc80\x1b[2J"))) == 1
    assert "\\udc80" in report(tmp_path)["hosts"]["h2"]["findings"][0]["message"]


def test_a_full_disk_for_logs_ends_nothing(run: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError("No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    assert run(Answers(reported("h1"), KILLED)) == 1


class Mute(Exception):
    def __str__(self) -> str:
        raise ValueError("x")


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (RuntimeError("cannot read password=Hunter2Plant" + "z" * 9999), "password=***"),
        (RuntimeError("a\nb"), "RuntimeError: a\\nb"),
        (Mute(), "Mute: <Mute whose str raises ValueError>"),
        (SystemExit(0), "SystemExit: 0"),
    ],
)
def test_whatever_a_task_raises_is_a_brief_reason(error: BaseException, said: str) -> None:
    future: Future[Outcome] = Future()
    future.set_exception(error)
    problem = outcome_of(future).problem
    assert said in problem
    assert "Hunter2Plant" not in problem
    assert len(problem) <= 300


def test_an_order_is_shown_without_its_options() -> None:
    secret = ("--data", "ssh_password=Hunter2Plant")
    order = Order(Shard(1, ("a",)), "i.py", ("gpu_node",), secret, "/")
    assert "Hunter2Plant" not in f"{order} {order.words}"
    assert pickle.loads(pickle.dumps(order)).options == secret


def test_logs_that_stay_cost_no_report(
    tmp_path: Path, run: Runs, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def busy(path: Path, **_: object) -> None:
        raise OSError("Device or resource busy")

    monkeypatch.setattr("os.rmdir", busy)
    assert run(Answers(reported("h1"))) == 0
    assert "1 host: 1 changed" in capsys.readouterr().out
    assert report(tmp_path)["hosts"]["h1"]["status"] == "changed"


class Gone(Answers):
    """Workers whose scheduler is gone after the first part."""

    def submit(self, order: Order) -> Future[Outcome]:
        if order.shard.number > 1:
            raise RuntimeError("Tried sending message after closing")
        return super().submit(order)


def test_workers_that_take_no_further_part_end_that_part_alone(tmp_path: Path, run: Runs) -> None:
    assert run(Gone(reported("h1"), reported("h2"))) == 1
    hosts = report(tmp_path)["hosts"]
    assert hosts["h1"]["status"] == "changed"
    (finding,) = hosts["h2"]["findings"]
    assert finding["code"] == "GF013"
    assert "RuntimeError: Tried sending message after closing" in finding["message"]


def test_without_a_folder_for_logs_nothing_begins(
    run: Runs, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def full(**_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("tempfile.mkdtemp", full)
    answers = Answers(reported("h1"))
    with pytest.raises(click.ClickException, match="workers: No space left on device"):
        run(answers)
    assert answers.begun == []
