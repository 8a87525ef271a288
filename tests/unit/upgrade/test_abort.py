"""An abort, and a start beside runs whose records cannot be used."""

from __future__ import annotations

import errno
import fcntl
import json
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import pytest

from gpufleet.cli import upgrade_clusters, upgrade_run, upgrade_runs
from gpufleet.core.exit_status import ExitStatus
from gpufleet.core.stopped import Stopped
from gpufleet.kube.findings import API_UNREACHABLE
from gpufleet.kube.operations.access import ClusterProblem, KubeAccess
from gpufleet.upgrade.decide import End
from gpufleet.upgrade.operations import opening
from gpufleet.upgrade.operations import store as store_module
from gpufleet.upgrade.operations.children import Children, Result
from gpufleet.upgrade.operations.hooks import Hook
from gpufleet.upgrade.operations.run import Run
from gpufleet.upgrade.operations.store import Store, runs_folder
from gpufleet.upgrade.order import Order
from gpufleet.upgrade.progress import OVER, Entry
from gpufleet.upgrade.states import Event, State
from tests.unit.upgrade.running import CHANGING, DRAINED, HOST, planned

AWAY = API_UNREACHABLE(context="c", url="https://c", reason="timed out")
NODE = {"h": {"node": "n", "kubeconfig": "/k", "context": "c"}}
SIGNALS = "gpufleet.cli.upgrade_run.signal.signal"


@pytest.fixture(autouse=True)
def opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[set[str]]:
    """Whose clusters were opened; none answers."""
    asked: list[set[str]] = []

    def away(places: Any, *others: Any) -> Any:
        asked.append(set(places))
        if places:
            raise ClusterProblem(AWAY)
        return {}

    monkeypatch.chdir(tmp_path)  # a run goes on in its own folder
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr(upgrade_clusters, "open_nodes", away)
    monkeypatch.setattr(SIGNALS, lambda *args: None)
    monkeypatch.setattr("gpufleet.upgrade.operations.store.LOOK", 0.01)
    return asked


def store(*events: Event) -> Store:
    """A run whose process is gone."""
    hosts: dict[str, dict[str, Any]] = {"h": {}}
    made = Store.create(Order("prod.py", "/", hosts=hosts, nodes=NODE), planned())
    for event in events:
        made.append(Entry(1.0, event.value, "h"))
    found = Store(made.path)
    made.release()
    return found


def test_an_abort_needs_no_cluster_whose_nodes_are_in_service(
    opened: list[set[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gpufleet.upgrade.operations.runner.release", lambda run: None)
    run = store(Event.PREPARED)
    assert upgrade_run.aborted(run, print) is ExitStatus.CONVERGED
    assert opened == []
    assert run.progress().run == "aborted"
    assert upgrade_run.aborted(run, print) is ExitStatus.CONVERGED  # it is over


def test_a_run_that_is_over_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpufleet.upgrade.operations.runner.release", lambda run: None)
    run = store(Event.PREPARED)
    upgrade_run.aborted(run, print)
    said: list[str] = []
    assert upgrade_run.carry_out(run, said.append) is ExitStatus.FAILED
    assert said == [f"run {run.name} is over: aborted"]


def test_an_abort_marks_nodes_that_are_left_behind_where_their_cluster_answers(
    opened: list[set[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gpufleet.upgrade.operations.runner.release", lambda run: None)
    stuck = (Event.CHANGE_BEGAN, Event.CHANGE_FAILED, Event.RESTORE_BEGAN, Event.RESTORE_FAILED)
    run = store(*DRAINED, *stuck)
    said: list[str] = []
    assert upgrade_run.aborted(run, said.append) is ExitStatus.FAILED
    assert opened == [{"h"}]  # it does not answer
    assert any("lack their mark" in line for line in said)
    assert run.progress().run == "aborted"


def test_an_abort_without_the_cluster_says_who_stays_out_of_service() -> None:
    run = store(*DRAINED)
    said: list[str] = []
    with pytest.raises(Stopped) as error:
        upgrade_run.aborted(run, said.append)
    assert [each.code for each in error.value.findings] == ["GF074"]
    assert "out of service: h. " in error.value.findings[0].message
    assert any(line.startswith(AWAY.code) for line in said)
    assert not run.progress().over
    assert run.request == "abort"


class Rebuilt:
    """Two clusters of a run by their contexts, each with a UID; their nodes are gone."""

    uids: Mapping[str, str] = {}
    locked: ClassVar[list[str]] = []

    def __init__(self, access: KubeAccess) -> None:
        self.context, self.url = access.context, f"https://{access.context}"

    def get(self, path: str) -> dict[str, Any]:
        if self.context not in self.uids:
            raise ClusterProblem(AWAY)
        return {"metadata": {"uid": self.uids[self.context]}}

    def find(self, path: str) -> None: ...

    def list(self, path: str, *how: Any) -> list[Any]:
        return []

    def create(self, path: str, body: Any) -> None: ...

    def close(self) -> None: ...


def of_two(monkeypatch: pytest.MonkeyPatch, *events: Event, **uids: str) -> Store:
    """A run of h in cluster A, with these events, and of i, drained in cluster B. `uids`: of the
    clusters that answer now."""
    monkeypatch.setattr(opening, "ClusterApi", Rebuilt)
    monkeypatch.setattr(Rebuilt, "uids", uids)
    monkeypatch.setattr(Rebuilt, "locked", [])
    monkeypatch.setattr(opening, "take_lease", lambda api, *how: api.locked.append(api.context))
    monkeypatch.setattr(opening, "remove_pods", lambda api: None)
    monkeypatch.setattr(upgrade_clusters, "open_nodes", opening.open_nodes)
    monkeypatch.setattr(upgrade_clusters, "accesses_now", lambda inventory: [])
    monkeypatch.setattr("gpufleet.upgrade.operations.runner.release", lambda run: None)
    monkeypatch.setattr("gpufleet.upgrade.operations.run.POLL", 0.0)
    monkeypatch.setattr(Children, "step", lambda self, step, hosts, *how, **more: {
        host: Result(True) for host in hosts})  # fmt: skip
    nodes = {
        host: {"node": host, "kubeconfig": f"/{at}", "context": at, "cluster": at}
        for host, at in (("h", "A"), ("i", "B"))
    }
    order = Order("prod.py", "/", hosts={"h": {}, "i": {}}, nodes=nodes)
    made = Store.create(order, planned(replace(HOST, name="i"), max_unavailable=2))
    for host, begun in (("h", events), ("i", DRAINED)):
        for event in begun:
            made.append(Entry(1.0, event.value, host))
    made.release()
    return Store(made.path)


@pytest.mark.parametrize(
    ("events", "after"),
    [
        (DRAINED, State.NOT_REACHED),
        ((*CHANGING, Event.CHANGED), State.DONE),
        (CHANGING, State.STUCK),
        ((*CHANGING, Event.CHANGE_FAILED, Event.RESTORE_BEGAN, Event.RESTORE_FAILED), State.STUCK),
    ],
)
def test_an_abort_ends_a_run_whose_cluster_was_rebuilt(
    events: tuple[Event, ...], after: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its nodes count as deleted by its user; nothing is done in the cluster that is there now."""
    run = of_two(monkeypatch, *events, A="new", B="B")
    said: list[str] = []
    status = upgrade_run.aborted(run, said.append, lambda question: True)
    progress = run.progress()
    assert progress.states == {"h": after, "i": State.NOT_REACHED}
    assert (progress.run, Rebuilt.locked) == ("aborted", ["B"])
    assert (status is ExitStatus.CONVERGED) is (after is not State.STUCK)
    if events[-1] is not Event.RESTORE_FAILED:
        assert "h: its node h is not in the cluster any more" in said
        assert "not in the cluster any more: Context 'A' of /A" in progress.reasons["h"]


def test_an_abort_returns_hosts_of_other_clusters(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of one that is away wait for another abort."""
    run = of_two(monkeypatch, *DRAINED, B="B")
    with pytest.raises(Stopped) as error:
        upgrade_run.aborted(run, print)
    assert [each.code for each in error.value.findings] == ["GF074"]
    assert "out of service: h. " in error.value.findings[0].message
    assert run.progress().states == {"h": State.UNCHANGED, "i": State.NOT_REACHED}
    assert not run.progress().over
    run.release()
    monkeypatch.setattr(Rebuilt, "uids", {"A": "A"})
    assert upgrade_run.aborted(run, print) is ExitStatus.CONVERGED
    assert run.progress().states["h"] is State.NOT_REACHED


def test_a_run_goes_on_without_clusters_whose_hosts_have_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = of_two(monkeypatch, *CHANGING, Event.CHANGED, Event.RETURNED, A="new", B="B")
    seen: list[Run] = []
    monkeypatch.setattr(upgrade_run, "carry_on", lambda run: seen.append(run) or End("paused"))
    upgrade_run.carry_out(upgrade_run.reopened(run), print)
    assert (Rebuilt.locked, set(seen[0].clusters)) == (["B"], {"i"})


def test_a_run_does_not_go_on_in_a_cluster_that_was_rebuilt(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = of_two(monkeypatch, *DRAINED, A="new", B="B")
    with pytest.raises(Stopped) as error:
        upgrade_run.carry_out(upgrade_run.reopened(run), print)
    assert error.value.findings[0].code == "GF288"
    assert (
        f"`gpufleet upgrade abort --run {run.name} --cluster-gone`"
        in error.value.findings[0].remedy
    )


def test_an_abort_is_left_to_the_process_that_carries_the_run_out() -> None:
    run = store(*DRAINED)
    at_work = Store(run.path)
    at_work.lock()
    assert upgrade_run.aborted(run, print) is None
    assert at_work.request == "abort"


def test_what_a_run_says_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upgrade_run, "carry_on", lambda run: End("interrupted"))
    monkeypatch.setattr(upgrade_clusters, "open_nodes", lambda *args: {})
    said: list[str] = []
    run = store(Event.PREPARED)
    upgrade_run.carry_out(run, said.append)
    assert any(f"`gpufleet upgrade status --run {run.name}`" in line for line in said)
    assert said[-1].startswith(f"interrupted; `gpufleet upgrade resume --run {run.name}`")


def test_no_command_outlives_a_run_that_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[Hook] = []

    def stopped(run: Run) -> None:
        begun.append(run.hooks.start("sleep 60", "h", 60.0))
        raise ClusterProblem(AWAY)

    monkeypatch.setattr(upgrade_run, "carry_on", stopped)
    monkeypatch.setattr(upgrade_clusters, "open_nodes", lambda *args: {})
    with pytest.raises(Stopped):
        upgrade_run.carry_out(store(Event.PREPARED, Event.REFUSED), print)
    assert begun[0].process.poll() is not None


def test_no_command_outlives_a_run_whose_display_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[Hook] = []

    class Broken:
        def start(self) -> None: ...

        def stop(self) -> None:
            raise RuntimeError("display")

    def stopped(run: Run) -> None:
        begun.append(run.hooks.start("sleep 60", "h", 60.0))
        raise ClusterProblem(AWAY)

    monkeypatch.setattr(upgrade_run, "carry_on", stopped)
    monkeypatch.setattr(upgrade_run, "_live", lambda run: Broken())
    monkeypatch.setattr(upgrade_clusters, "open_nodes", lambda *args: {})
    with pytest.raises(RuntimeError):
        upgrade_run.carry_out(store(Event.PREPARED, Event.REFUSED), print)
    assert begun[0].process.poll() is not None


def test_a_damaged_record_stops_no_other_run() -> None:
    run = store(*DRAINED)
    (run.path / "record.jsonl").write_text("{\n")
    said: list[str] = []
    upgrade_runs.no_other("/prod.py", said.append)
    assert [line[:5] for line in said] == ["GF075"]
    assert Store.all() == []


def of_another(run: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """A third user has written the record, below a folder of this user."""
    there, mine = Path.stat, os.geteuid()

    def of_other(path: Path, **how: Any) -> os.stat_result:
        found = there(path, **how)
        if path != run.path:
            return found
        return os.stat_result((*found[:4], mine + 99999, *found[5:]))

    monkeypatch.setattr(Path, "stat", of_other)


@pytest.mark.parametrize("inventory", ["/prod.py", "/other.py"])
def test_a_run_of_another_user_counts_for_its_inventory(
    inventory: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is carried out by its record, which stays where it is."""
    run = store(*DRAINED)
    of_another(run, monkeypatch)
    if inventory == "/prod.py":
        with pytest.raises(Stopped) as error:
            upgrade_runs.no_other(inventory, print)
        assert error.value.findings[0].code == "GF287"
    else:
        upgrade_runs.no_other(inventory, print)
    assert run.path.exists()


@pytest.mark.parametrize("number", [errno.EACCES, errno.EIO, errno.ESTALE, errno.EMFILE])
def test_a_record_that_is_not_read_for_a_moment_stays(
    number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its nodes are out of service: no other run begins as if it had never been."""
    run = store(*DRAINED)
    opened = os.open

    def failing(path: Any, *how: Any, **more: Any) -> int:
        if path == run.path / "run.json":
            raise OSError(number, os.strerror(number))
        return opened(path, *how, **more)

    monkeypatch.setattr(os, "open", failing)
    with pytest.raises(Stopped) as error:
        upgrade_runs.no_other("/prod.py", print)
    assert error.value.findings[0].code == "GF064"
    assert run.path.exists()


@pytest.mark.parametrize("why", ["not readable", "locked", "lock cannot be read"])
def test_a_record_that_cannot_be_used_may_be_of_a_run_at_work(
    why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then no other one begins beside it."""
    run = store(*DRAINED)
    if why == "not readable":
        read = store_module.read_regular

        def refused(path: Path, most: int) -> bytes:
            if path == run.path / "run.json":
                raise PermissionError(13, "Permission denied")
            return read(path, most)

        monkeypatch.setattr(store_module, "read_regular", refused)
    else:
        (run.path / "run.json").write_text("{")
        (run.path / "lock").unlink(missing_ok=True)
    if why == "locked":
        run.lock()
    elif why == "lock cannot be read":
        (run.path / "lock").symlink_to("lock")
    with pytest.raises(Stopped) as error:
        upgrade_runs.no_other("/prod.py", print)
    assert error.value.findings[0].code == "GF064"
    assert run.path.exists()


@pytest.mark.parametrize("file", ["run.json", "record.jsonl"])
@pytest.mark.parametrize("put", ["pipe", "link", "loop"])
def test_a_record_of_odd_files_is_set_aside(put: str, file: str, tmp_path: Path) -> None:
    """Nothing is waited for that another user has put there."""
    run = store(*DRAINED)
    path = run.path / file
    if put == "loop":
        data = json.loads((run.path / "run.json").read_text())
        (tmp_path / "loop").symlink_to(tmp_path / "loop")
        data["order"]["folder"] = str(tmp_path / "loop")
        (run.path / "run.json").write_text(json.dumps(data))
        upgrade_runs.no_other("/prod.py", print)
        return
    content = path.read_bytes()
    path.unlink()
    if put == "pipe":
        os.mkfifo(path)
    else:
        (tmp_path / "there").write_bytes(content)
        path.symlink_to(tmp_path / "there")
    said: list[str] = []
    upgrade_runs.no_other("/prod.py", said.append)
    assert [line[:5] for line in said] == ["GF075"]


def test_commands_without_a_name_pass_over_runs_of_other_users(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    mine, theirs = store(*DRAINED), store(*DRAINED)
    of_another(theirs, monkeypatch)
    assert upgrade_runs.to_change("").name == Store.find().name == mine.name
    with pytest.raises(Stopped) as error:
        upgrade_runs.to_change(theirs.name)
    assert error.value.findings[0].code == "GF064"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"hosts": {}}, "it has no settings of 'h'"),
        ({"hosts": {"h": {"soak": "x", "later": 1}}}, "soak: "),
        ({"nodes": {"h": {"node": 5}}}, "h.node: "),
        ({"hosts": {"h": {"later": 1}}}, "GF289"),
        ({"nodes": {"h": {**NODE["h"], "later": 1}}}, "GF289"),
        ({"others": {"i": {}}}, "i.node: "),
    ],
)
def test_a_run_with_a_damaged_order_does_not_go_on(change: dict[str, Any], said: str) -> None:
    run = store(*DRAINED)
    file = run.path / "run.json"
    data = json.loads(file.read_text())
    data["order"] |= change
    file.write_text(json.dumps(data))
    with pytest.raises(Stopped) as error:
        upgrade_run.aborted(run, print)
    assert error.value.findings[0].code == ("GF289" if said == "GF289" else "GF064")
    assert said in str(error.value)


@pytest.mark.parametrize(
    "change", [{"schema": 99}, {"schema": 99, "order": []}, {"order": {"later": 1}}]
)
@pytest.mark.parametrize("last", ["", "begun", "paused", *OVER])
def test_a_run_of_another_version_stays(change: dict[str, Any], last: str) -> None:
    """Its nodes are out of service, and that version can return them."""
    run = store(*DRAINED)
    if last:
        run.append(Entry(2.0, last))
    file = run.path / "run.json"
    data = json.loads(file.read_text())
    for part, new in change.items():
        data[part] = data[part] | new if part == "order" and new else new
    file.write_text(json.dumps(data))
    if last in OVER:
        upgrade_runs.no_other("/prod.py", pytest.fail)
    else:
        with pytest.raises(Stopped) as error:
            upgrade_runs.no_other("/prod.py", print)
        assert error.value.findings[0].code == "GF289"
    assert file.exists()


def test_a_run_of_another_version_may_have_other_events() -> None:
    run = store(*DRAINED)
    (run.path / "run.json").write_text('{"schema": 99}')
    with (run.path / "record.jsonl").open("a") as record:
        record.write('{"time": 1, "event": "finished"}\n{"at": 1}\n')
    with pytest.raises(Stopped):
        upgrade_runs.no_other("/prod.py", print)
    assert run.path.exists()


def test_an_unfinished_run_does() -> None:
    store(*DRAINED)
    with pytest.raises(Stopped) as error:
        upgrade_runs.no_other("/prod.py", print)
    assert error.value.findings[0].code == "GF062"


def test_of_two_starts_at_a_time_one_creates_its_run() -> None:
    """Both have passed the look for other runs, and wait at their question."""
    both = [upgrade_run.PlannedRun(Order("prod.py", "/"), planned()) for _ in range(2)]
    first = both[0].store(print)
    with pytest.raises(Stopped) as error:
        both[1].store(print)
    assert error.value.findings[0].code == "GF062"
    assert [each.name for each in Store.all()] == [first.name]


def test_nobody_looks_for_runs_while_one_is_created(monkeypatch: pytest.MonkeyPatch) -> None:
    locked: list[bool] = []

    def looked(inventory: str, say: Any) -> None:
        handle = os.open(runs_folder(), os.O_RDONLY)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            locked.append(True)
        os.close(handle)

    monkeypatch.setattr(upgrade_run, "no_other", looked)
    upgrade_run.PlannedRun(Order("prod.py", "/"), planned()).store(print)
    assert locked == [True]


def test_a_damaged_record_of_a_run_at_work_is_left() -> None:
    run = store()
    Store(run.path).path.joinpath("record.jsonl").write_text("{\n")
    at_work = Store(run.path)
    at_work.lock()
    with pytest.raises(Stopped) as error:
        upgrade_runs.no_other("/prod.py", print)
    assert error.value.findings[0].code == "GF064"
    assert run.path.exists()
