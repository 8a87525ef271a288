"""Runs on several workers, real processes: what comes back, and what is refused."""

from __future__ import annotations

from concurrent.futures import CancelledError, Future
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path

import click
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
)
from parts import hosts, kept, report, requested, run, runs_of, states

from gpufleet.cli import sharded_run, workers
from gpufleet.cli.deploy import Place, Question
from gpufleet.cli.shard_request import request_of
from gpufleet.cli.sharded_run import run_sharded
from gpufleet.cli.workers import Order
from gpufleet.run.shards import Outcome, Shard
from gpufleet.verify.inventory import Target
from gpufleet_sandbox.waiting import wait_until


def test_every_host_is_in_one_report(
    site: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GPUFLEET_JUNIT", str(site / "junit.xml"))
    assert run(requested("a", "b", "c")) == 0
    assert list(states(site)) == ["a", "b", "c"]
    assert set(states(site).values()) == {"converged"}
    assert report(site)["exit_status"] == 0
    assert {path.read_text() for path in site.glob("?.0")} == {"a", "b c"}
    assert "3 hosts: 0 changed, 3 with no changes, 0 failed" in capsys.readouterr().out
    assert sorted(path.name for path in site.iterdir()) == [
        "a.0", "b.0", "c.0", "junit.xml", "report.json",
    ]  # fmt: skip
    assert (site / "junit.xml").read_text().count("<testcase ") == 3


def test_what_ssh_does_not_reach_is_run_on_here_at_the_end(site: Path) -> None:
    cluster = Target("lab", ("gpu_cluster",), {})
    names = ("@local", "a", "@docker/x", "b", "@ssh/c")
    targets = [cluster, Target(names[0], ("gpu_nodes", names[0]), {}), *hosts(*names[1:])]
    assert run(request_of("inv.py", targets, targets, (), Place(1))) == 0
    assert Path("a.0").read_text() == "a b @ssh/c"
    assert Path("lab.0").read_text() == "lab @local @docker/x"
    assert list(states(site)) == ["lab", *names]


def test_a_shard_whose_worker_was_killed_runs_again(
    site: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(requested("a", "dies-once")) == 0
    assert states(site) == {"a": "converged", "dies-once": "converged"}
    assert (runs_of(site, "a"), runs_of(site, "dies-once")) == (1, 2)
    assert "A worker ended with status -9: its 1 host run again" in capsys.readouterr().err


def test_a_shard_that_is_killed_twice_is_reported_with_its_output(
    site: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(requested("a", "dies")) == 1
    assert states(site) == {"a": "converged", "dies": "not reached"}
    assert runs_of(site, "dies") == 2
    (finding,) = report(site)["hosts"]["dies"]["findings"]
    assert finding["code"] == "GF013"
    assert "printed last: at work" in finding["message"]
    logs = kept(capsys.readouterr().err)
    assert "at work" in (logs / "2").read_text()
    assert (logs.stat().st_mode & 0o777, (logs / "2").stat().st_mode & 0o777) == (0o700, 0o600)


def test_a_worker_that_fails_after_its_report_is_no_success(
    site: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As by an exception in a deploy of the user's: the report of its hosts is that of the plan."""
    assert run(requested("a", "raises")) == 1
    assert states(site) == {"a": "converged", "raises": "not reached"}
    (finding,) = report(site)["hosts"]["raises"]["findings"]
    assert finding["code"] == "GF013"
    assert "NameError" in finding["message"]
    assert "NameError" in (kept(capsys.readouterr().err) / "2").read_text()
    assert report(site)["completed"] is False


def test_a_run_whose_workers_all_succeed_is_completed(site: Path) -> None:
    assert run(requested("a", "b")) == 0
    assert report(site)["completed"] is True


def test_options_are_not_in_the_arguments_of_a_worker(
    site: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    secret = ("--data", "ssh_password=Hunter2Plant")
    assert run(requested("shows", "bad", options=secret)) == 1
    output = (kept(capsys.readouterr().err) / "1").read_text()
    arguments, taken = output.splitlines()[-2:]
    assert "--limit" in arguments
    assert "Hunter2Plant" not in arguments
    assert taken.endswith(" --data ssh_password=Hunter2Plant")


def test_the_budget_ends_the_run_before_further_shards(
    site: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gpufleet.run.shards.LARGEST", 1)
    names = ("bad", "a", "b", "c")
    assert run(requested(*names, workers=1, options=("--fail-percent", "20"))) == 1
    assert states(site) == {
        "bad": "failed",
        "a": "not reached",
        "b": "not reached",
        "c": "not reached",
    }
    assert "GF014 1 of 4 hosts failed" in capsys.readouterr().err
    assert run(requested(*names, workers=1, options=("--fail-percent=25",))) == 1
    assert states(site)["c"] == "converged"


def test_a_budget_that_is_used_up_at_the_end_stopped_nothing(
    site: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(requested("a", "bad", options=("--fail-percent", "0"))) == 1
    assert states(site) == {"a": "converged", "bad": "failed"}
    assert "GF014" not in capsys.readouterr().err


def test_wrong_options_end_the_run_without_the_question(
    site: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gpufleet.run.shards.LARGEST", 1)
    monkeypatch.setattr(click, "confirm", lambda *_, **__: pytest.fail("asked"))
    assert run(requested("usage", "a", workers=1), Question("Sure?", ("preflight",))) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert "No such option '--sudoo'" in said.err
    assert [path.name for path in site.iterdir()] == ["usage.0"]


def test_what_was_done_before_a_usage_error_is_reported(
    site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gpufleet.run.shards.LARGEST", 1)
    ended: list[int] = []
    monkeypatch.setattr("gpufleet.run.lifecycle.end", ended.append)
    assert run(requested("a", "usage", "b", workers=1)) == 1
    assert ended == []
    assert states(site) == {"a": "converged", "usage": "not reached", "b": "not reached"}
    (finding,) = report(site)["hosts"]["usage"]["findings"]
    assert "No such option '--sudoo'" in finding["message"]


class Broken:
    """Workers whose tasks raise."""

    count = 1

    def __init__(self, *errors: BaseException | None) -> None:
        self.errors = list(errors)
        self.closed = False

    def submit(self, order: Order) -> Future[Outcome]:
        future: Future[Outcome] = Future()
        if error := self.errors.pop():
            future.set_exception(error)
        else:
            future.cancel()
            future.set_running_or_notify_cancel()
        return future

    def stop(self) -> None: ...

    def kill(self) -> None: ...

    def close(self) -> None:
        self.closed = True


def test_whatever_a_task_raises_is_said_of_its_hosts(
    site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = Broken(None, TypeError("no such argument"), UnicodeDecodeError("utf-8", b"", 0, 1, ""))
    monkeypatch.setattr(sharded_run, "opened", lambda place: broken)
    monkeypatch.setattr("gpufleet.run.shards.LARGEST", 1)
    assert run(requested("a", "b", "c")) == 1
    found = [host["findings"][0] for host in report(site)["hosts"].values()]
    assert [finding["code"] for finding in found] == ["GF013"] * 3
    names = ("UnicodeDecodeError", "TypeError: no such argument", CancelledError.__name__)
    assert all(name in finding["message"] for name, finding in zip(names, found, strict=True))
    assert broken.closed


def test_workers_end_before_an_exception_goes_on(
    site: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    calls: list[int] = []

    def deploys(_: list[Target]) -> list[str]:
        calls.append(1)
        if len(calls) == 2:
            assert wait_until(Path("waits").exists, 30)
            raise RuntimeError("in the loop")
        return ["gpu_node"]

    with pytest.raises(RuntimeError, match="in the loop"):
        run_sharded(requested("slow", "a"), deploys, None)
    assert Path("stopped").exists()
    assert (kept(capsys.readouterr().err) / "1").read_text().startswith("at work")


def test_the_output_of_a_worker_stays_as_it_is(
    site: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(requested("bad", "b")) == 1
    output = (kept(capsys.readouterr().err) / "1").read_text()
    assert output == "at work\x1b[2J\n"


def test_a_worker_gets_no_signal_of_the_terminal(site: Path) -> None:
    log = site / "log"
    order = Order(Shard(1, ("apart",)), "inv.py", (), (), str(site), str(log))
    assert "of its own session" in workers.run_order(order, lambda: False, set()).output


def test_inventories_whose_nodes_join_in_one_run_are_refused() -> None:
    control = Target("cp", ("control_plane", "gpu_nodes"), {})
    with pytest.raises(click.UsageError, match="its nodes join in one run"):
        request_of("inv.py", [control], [], (), Place(2))


@pytest.mark.parametrize("name", ["rack1", "gpu*", "gpu[1]"])
def test_a_worker_gets_hosts_by_names_that_choose_no_others(name: str) -> None:
    order = Order(Shard(1, (name,)), "inv.py", ("gpu_node",), (), "/")
    limit = order.words[order.words.index("--limit") + 1]
    assert fnmatchcase(name, limit)
    assert limit != name  # which pyinfra would take for a group
    assert not any(fnmatchcase(other, limit) for other in ("gpu1", "gpu12", "gpu*x", "rack2"))


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (("--limit", "a"), "--limit is not possible with workers: choose hosts"),
        (("--exclude=a",), "--exclude is not possible with workers: choose hosts"),
        (("--chdir", "x"), "start gpufleet in that folder"),
        (("--serial",), "several workers run at a time"),
        (("-v",), "-v is not possible with workers: the output"),
        (("--sudo", "-yvv"), "-yvv is not possible"),
        (("--debug-facts",), "--debug-facts is not possible"),
        (("--diff",), "which is kept where a host fails"),
        (("--json",), "which is kept where a host fails"),
        (("--same-sudo-password",), "workers cannot ask"),
        (("--ssh-password-prompt",), "workers cannot ask"),
        (("--fail-percent", "x"), "not a number"),
        (("--support",), "--support is not possible with workers: it prints"),
        (("--sudo", "--version"), "it prints something and runs nothing"),
        (("-h",), "it prints something and runs nothing"),
    ],
)
def test_options_that_need_one_process_are_refused(options: tuple[str, ...], why: str) -> None:
    with pytest.raises(click.UsageError, match=why):
        requested("a", options=options)


def test_other_options_are_handed_on() -> None:
    options = ("--sudo", "--data", "x=1", "--dry", "-y", "--ssh-user", "v")
    assert requested("a", options=options).options == options


def test_a_budget_of_config_py_is_refused_and_that_of_the_run_is_for_all_hosts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """pyinfra would count within each worker."""
    monkeypatch.chdir(tmp_path)
    Path("other.py").write_text("from pyinfra import config\nconfig.FAIL_PERCENT = 10\n")
    with pytest.raises(click.UsageError, match=r"other\.py has FAIL_PERCENT"):
        requested("a", options=("--config", "other.py"))
    assert requested("a").percent is None
    Path("other.py").rename("config.py")
    with pytest.raises(click.UsageError, match=r"config\.py has FAIL_PERCENT"):
        requested("a")
    found = requested("a", options=("--fail-percent", "10", "--sudo"))
    assert (found.percent, found.options) == (10, ("--sudo", "--fail-percent", "100"))


def test_a_worker_elsewhere_needs_the_same_version_and_folder(tmp_path: Path) -> None:
    made = Order(Shard(1, ("a",)), "inv.py", ("gpu_node",), (), str(tmp_path / "missing"))
    assert "it has no folder" in workers.run_order(made, lambda: False, set()).problem
    other = replace(made, folder=str(tmp_path), version="0")
    assert "this run is of 0" in workers.run_order(other, lambda: False, set()).problem


def test_the_words_of_a_shard_are_those_of_pyinfra(tmp_path: Path) -> None:
    (tmp_path / "deploys").mkdir()
    (tmp_path / "deploys/gpu_node.py").touch()
    (tmp_path / "config.py").touch()
    made = Order(Shard(1, ("a", "b")), "inv.py", ("gpu_node",), ("--data", "x=1"), str(tmp_path))
    assert made.words[made.words.index("-y") :] == [
        "-y", "--limit", "[a]", "--limit", "[b]", "inv.py", "deploys/gpu_node.py",
    ]  # fmt: skip


@pytest.mark.extended
def test_a_password_cannot_be_typed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Real pyinfra, which asks for the passphrase of a key."""
    key = ec.generate_private_key(ec.SECP256R1()).private_bytes(
        Encoding.PEM, PrivateFormat.TraditionalOpenSSL, BestAvailableEncryption(b"secret")
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GPUFLEET_REPORT", str(tmp_path / "report.json"))
    Path("key").write_bytes(key)
    data = {"ssh_hostname": "127.0.0.1", "ssh_port": 1, "ssh_key": "key"}
    Path("inv.py").write_text(f"gpu_nodes = [('a', {data!r})]")
    assert run(requested("a")) == 1
    (finding,) = report(tmp_path)["hosts"]["a"]["findings"]
    assert finding["code"] == "GF005"
    assert "has a passphrase, and there is no terminal" in finding["message"]


@pytest.mark.extended
def test_options_that_pyinfra_does_not_know_are_a_usage_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(requested("a", "b", options=("--sudoo",))) == 2
    assert "No such option '--sudoo'" in capsys.readouterr().err
