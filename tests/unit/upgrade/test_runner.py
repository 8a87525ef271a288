"""What a run writes down when it is interrupted, and before it takes a host back."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

import pytest

from gpufleet.cli.upgrade_run import plan_rollback
from gpufleet.core.stopped import Stopped
from gpufleet.kube.findings import API_UNREACHABLE, LEASE_LOST
from gpufleet.kube.operations.access import ClusterProblem
from gpufleet.upgrade.decide import Wait
from gpufleet.upgrade.operations import changing, children, runner
from gpufleet.upgrade.operations.changing import change, restore
from gpufleet.upgrade.operations.check import Pull
from gpufleet.upgrade.operations.children import Result
from gpufleet.upgrade.operations.cluster import Round, Seen
from gpufleet.upgrade.operations.draining import is_out, leave
from gpufleet.upgrade.operations.hooks import Hook
from gpufleet.upgrade.operations.preparing import prepare, release
from gpufleet.upgrade.operations.run import Run
from gpufleet.upgrade.operations.store import Store
from gpufleet.upgrade.plan import reversed_plan
from gpufleet.upgrade.settings import UpgradeSettings
from gpufleet.upgrade.states import Event, State
from tests.unit.upgrade.running import CHANGING, DRAINED, GOOD, HOST, Steps, planned, running, state

AWAY = API_UNREACHABLE(context="c", url="https://c", reason="timed out")
RESTORING = (*CHANGING, Event.CHANGE_FAILED)
SETTINGS = UpgradeSettings.model_validate({})
IN_USE = Result(False, "GF072 GPUs are in use: train (7)", busy=True)


pytestmark = pytest.mark.usefixtures("own_folder")


class Cluster:
    """A node in memory."""

    def __init__(
        self, cleared: Round, refusal: str = "", problem: ClusterProblem | None = None
    ) -> None:
        """`problem`: why the API does not answer."""
        self.cleared, self.refusal, self.problem = cleared, refusal, problem
        self.left_behind, self.kured = "", self
        self.image, self.pulls = Pull(), 0

    unchecked: Mapping[str, str] = {}
    has_image: frozenset[str] = frozenset()

    def check_refused(self, host: str, image: str) -> str:
        self.look()
        return self.refusal

    def look(self) -> Seen:
        if self.problem:
            raise self.problem
        return Seen()

    give_back = look  # of kured's lock

    def clear(self, host: str, policy: Any) -> Round:
        return self.cleared

    def pull(self, host: str, image: str, seconds: float) -> Pull:
        self.look()
        self.pulls += 1
        return self.image

    def check(self, host: str, image: str, seconds: float) -> str:
        return ""

    def leave_behind(self, host: str, reason: str) -> None:
        self.left_behind = reason

    def post_event(self, host: str, event: Event, reason: str) -> None:
        pass


def test_a_preparation_that_was_interrupted_refuses_no_host() -> None:
    steps = Steps(Result(False, "SIGTERM"))
    run = running(planned(), steps)
    steps.before = run.stop
    prepare(run, ["h"])
    assert state(run) is State.WAITING


def test_steps_keep_the_node_reboot_that_pods_left_by() -> None:
    """Whatever the inventory says of it by now."""
    plan, steps = planned(replace(HOST, name="g"), replace(HOST, name="i")), Steps()
    store = running(plan, steps).store
    order = replace(store.head()[0], reboots={"h": "never", "g": "if_needed"})
    kept = Store.create(order, plan)
    chosen = dict.fromkeys("hgi", SETTINGS)
    run = Run(kept, plan, chosen, cast(Any, steps), lambda line: None)
    assert set(run.step("change", dict.fromkeys("hgi", "580.2"))) == {"h", "g", "i"}
    assert steps.reboots == {"h": "never", "g": "if_needed", "i": ""}
    assert len(steps.asked) == 3


def test_a_check_that_was_interrupted_rolls_nothing_back(monkeypatch: pytest.MonkeyPatch) -> None:
    run = running(planned(), Steps(), *DRAINED)

    def checked(run: Run, results: object) -> dict[str, Result]:
        run.stop()
        return {"h": Result(False, "exit status -2")}

    monkeypatch.setattr(changing, "_checked", checked)
    change(run, ["h"])
    assert state(run) is State.CHANGING


def test_a_drain_command_that_was_interrupted_gives_no_host_up() -> None:
    run = running(planned(), Steps(), *DRAINED[:2], drain_command="false")
    run.hooks.polled["h"] = Hook("false", "h", 60.0)
    run.hooks.polled["h"].process.wait()
    run.stop()
    assert not is_out(run, "h")
    assert state(run) is State.DRAINING


@pytest.mark.parametrize(("refusal", "after"), [("quota", State.REFUSED), ("", State.READY)])
def test_a_node_whose_check_would_be_refused_is_not_disturbed(refusal: str, after: State) -> None:
    node = Cluster(Round(), refusal)
    run = running(planned(), Steps(), clusters={"h": node})
    prepare(run, ["h"])
    assert state(run) is after
    assert run.progress.reasons.get("h", "").startswith("GF073" if refusal else "")


@pytest.mark.parametrize(
    ("kind", "came", "after"),
    [
        ("upgrade", "image", State.REFUSED),
        ("upgrade", "node", State.REFUSED),
        ("upgrade", "disk", State.REFUSED),
        ("upgrade", "later", State.READY),
        ("rollback", "image", State.REFUSED),
        ("rollback", "node", State.READY),
        ("rollback", "disk", State.READY),
    ],
)
def test_an_image_that_is_not_there(kind: Any, came: Any, after: State) -> None:
    """What a roll-back undoes may keep the pod from starting: then it is no fault of the image."""
    node = Cluster(Round())
    node.image = Pull(came, "no image")
    run = running(replace(planned(), kind=kind), Steps(), clusters={"h": node})
    prepare(run, ["h"])
    assert (state(run), node.pulls) == (after, 1)
    assert ("no image" in run.progress.reasons.get("h", "")) is (after is State.REFUSED)


@pytest.mark.parametrize("came", ["image", "node", "disk", "later"])
@pytest.mark.parametrize("wait", [0, 3600])
def test_a_drained_node_without_the_image_is_not_changed(came: Any, wait: int) -> None:
    """A node of which it is not known is asked again, also by the next process."""
    node, steps = Cluster(Round(drained=True)), Steps()
    node.image = Pull(came, "no image")
    run = running(planned(), steps, *DRAINED, clusters={"h": node}, wait=wait)
    change(run, ["h"])
    assert "change" not in steps.asked
    if not wait or came in ("image", "node"):
        assert state(run) is State.UNCHANGED
        assert run.progress.reasons["h"].startswith("GF286 The node was drained")
        return
    assert state(run) is State.DRAINED
    node.image = Pull()
    change(run, ["h"])
    assert state(run) is State.CHANGED


def test_an_api_that_is_away_while_the_image_is_pulled_is_asked_again() -> None:
    node = Cluster(Round(drained=True))
    run = running(planned(), Steps(), *DRAINED, clusters={"h": node})
    node.problem = ClusterProblem(AWAY)
    change(run, ["h"])
    assert state(run) is State.DRAINED
    node.problem = None
    change(run, ["h"])
    assert (state(run), node.pulls) == (State.CHANGED, 1)


def test_a_node_short_of_memory_is_waited_for_after_a_silence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The time in which its cluster did not answer is none in which it was waited for."""
    now = [1000.0]
    monkeypatch.setattr("gpufleet.upgrade.operations.run.time.monotonic", lambda: now[0])
    node = Cluster(Round(drained=True))
    run = running(planned(), Steps(), *DRAINED, clusters={"h": node}, wait=3600)
    node.problem = ClusterProblem(AWAY)
    change(run, ["h"])
    now[0] += 700  # more than a node short of memory is waited for
    node.problem, node.image = None, Pull("later", "short of memory")
    change(run, ["h"])
    assert state(run) is State.DRAINED


def test_an_image_that_was_pulled_is_not_pulled_again() -> None:
    node = Cluster(Round(drained=True))
    node.has_image = frozenset("h")
    change(running(planned(), Steps(), *DRAINED, clusters={"h": node}), ["h"])
    assert node.pulls == 0


def test_no_host_is_prepared_once_an_abort_is_requested() -> None:
    """The look at its image is ended by it: what it says is not known."""
    node, steps = Cluster(Round()), Steps()
    node.image = Pull("later", "the run ends")
    run = running(planned(), steps, clusters={"h": node})
    run.store.ask("abort")
    prepare(run, ["h"])
    assert (state(run), steps.asked) == (State.WAITING, [])


def test_a_cluster_that_does_not_answer_refuses_no_host() -> None:
    node = Cluster(Round(), problem=ClusterProblem(AWAY))
    run = running(planned(), Steps(), clusters={"h": node})
    prepare(run, ["h"])
    assert state(run) is State.WAITING
    node.problem = ClusterProblem(LEASE_LOST(holder="another"))
    with pytest.raises(ClusterProblem):
        prepare(run, ["h"])


def test_a_cluster_that_does_not_answer_is_waited_for() -> None:
    node = Cluster(Round(), problem=ClusterProblem(AWAY))
    run = running(planned(), Steps(), Event.PREPARED, clusters={"h": node})
    waits = runner._decided(run)
    assert isinstance(waits, Wait)
    assert "timed out" in waits.reason
    run.store.ask("pause")
    assert runner.carry_on(run).event == "paused"  # without kured's lock


def test_a_roll_back_takes_the_packages_over_first() -> None:
    run = running(reversed_plan(planned(), ["h"]), Steps(Result(False, "GF071 of another run")))
    prepare(run, ["h"])
    assert state(run) is State.REFUSED
    assert run.children.asked == ["take"]  # type: ignore[attr-defined]


def test_a_roll_back_is_not_rolled_back() -> None:
    plan = reversed_plan(planned(), ["h"])
    run = running(plan, Steps(), *CHANGING, Event.CHANGED, Event.RETURNED)
    run.write("finished")
    with pytest.raises(Stopped) as error:
        plan_rollback(run.store, print)
    assert error.value.findings[0].code == "GF065"


def test_texts_of_hosts_are_one_line() -> None:
    run = running(planned(), Steps())
    run.write(Event.REFUSED, "h", "process \x1b[2J\nhost: done")
    assert run.progress.reasons["h"].isprintable()


@pytest.mark.parametrize(
    ("at", "owner", "code", "after"),
    [
        ("prepared", "", "GF530", State.UNCHANGED),  # it says that nothing was begun
        ("changing", "", "GF530", State.FAILED),
        ("prepared", "other", "GF530", State.FAILED),  # it is not known what was done with ours
        ("prepared", "other", "GF071", State.UNCHANGED),  # the first command refused
        ("", "", "GF059", State.UNCHANGED),
        ("", "", "GF078", State.FAILED),  # it was changed
    ],
)
def test_a_host_that_was_not_changed_is_not_reached(
    at: str, owner: str, code: str, after: State
) -> None:
    steps = Steps(Result(False, f"{code} why"))
    run = running(planned(), steps, *DRAINED)
    seen = {"owner": owner or run.store.name, "at": at}
    steps.results["look"] = Result(True, plan=seen)
    change(run, ["h"])
    assert state(run) is after
    assert run.progress.reasons["h"] == f"{code} why"
    assert run.progress.failures == (after is State.FAILED)


AWAY_HOST = Result(False, "the host was not reached", reached=False)


def test_a_host_that_a_change_did_not_reach_was_not_changed() -> None:
    run = running(planned(), Steps(AWAY_HOST), *DRAINED)
    change(run, ["h"])
    assert state(run) is State.UNCHANGED
    assert run.progress.failures == 0


@pytest.mark.parametrize("seconds", [60.0, 0.0])
def test_a_host_that_was_begun_is_waited_for_until_it_is_reached(
    seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changing, "UNREACHED", seconds)
    steps = Steps(AWAY_HOST)
    now = time.time()
    run = running(planned(), steps, *CHANGING, at=now, wait=0)
    change(run, ["h"])
    assert state(run) is (State.CHANGING if seconds else State.FAILED)
    run = running(planned(), steps, *RESTORING, at=now, wait=0)
    run.store.ask("abort")
    restore(run, ["h"])
    assert state(run) is (State.RESTORING if seconds else State.STUCK)
    steps.result = GOOD
    if seconds:
        restore(run, ["h"])
        assert state(run) is State.RESTORED


def test_a_roll_back_that_reached_a_host_once_is_not_undone_by_a_gap() -> None:
    steps = Steps(GOOD, change=AWAY_HOST)
    run = running(reversed_plan(planned(), ["h"]), steps, *DRAINED, wait=60)
    change(run, ["h"])
    assert state(run) is State.CHANGING


@pytest.mark.parametrize("part", [None, {"status": "not reached", "findings": [], "errors": []}])
def test_a_report_says_who_was_not_reached(part: dict[str, Any] | None) -> None:
    assert not children._result(part).reached
    assert children._result({"status": "failed"}).reached


@pytest.mark.parametrize("code", ["GF071", "GF059", "GF078"])
def test_a_refusal_is_no_proof_after_another_attempt(code: str) -> None:
    """The state of its folder is gone: what was done with the host is not known."""
    steps = Steps(Result(False, f"{code} why"), look=Result(True, plan={"owner": "", "at": ""}))
    run = running(planned(), steps, *CHANGING)
    change(run, ["h"])
    assert state(run) is State.FAILED


def test_a_refusal_is_no_proof_in_a_roll_back() -> None:
    steps = Steps(GOOD, change=Result(False, "GF071 why"))
    run = running(reversed_plan(planned(), ["h"]), steps, *DRAINED)
    change(run, ["h"])
    assert state(run) is State.FAILED


@pytest.mark.parametrize(("events", "after"), [(DRAINED, State.UNCHANGED),
                                               (CHANGING, State.FAILED)])  # fmt: skip
def test_pods_that_do_not_go_are_no_failure_of_the_change(
    events: tuple[Event, ...], after: State
) -> None:
    """Unless an earlier process has begun it, and the host does not answer."""
    clusters = {"h": Cluster(Round(reasons=["ns/train"]))}
    steps = Steps(Result(False, "no answer"))
    run = running(planned(), steps, *events, clusters=clusters)
    change(run, ["h"])
    assert state(run) is after
    assert "ns/train" in run.progress.reasons["h"]
    assert "change" not in steps.asked


def test_a_roll_back_waits_for_work_on_the_gpus() -> None:
    steps = Steps(restore=IN_USE)
    run = running(planned(), steps, *RESTORING, wait=60)
    restore(run, ["h"])
    assert state(run) is State.RESTORING
    assert steps.asked == ["restore"]
    steps.results["restore"] = GOOD
    restore(run, ["h"])
    assert state(run) is State.RESTORED
    assert steps.asked == ["restore", "restore", "change"]


@pytest.mark.parametrize(("wait", "request_"), [(0, ""), (60, "abort")])
def test_a_host_in_use_is_left_behind_with_the_reason(wait: int, request_: str) -> None:
    node = Cluster(Round(drained=True))
    steps = Steps(restore=IN_USE)
    run = running(planned(), steps, *RESTORING, clusters={"h": node}, wait=wait)
    run.store.ask(request_)
    restore(run, ["h"])
    assert state(run) is State.STUCK
    assert node.left_behind == run.progress.reasons["h"] == IN_USE.reason
    assert "change" not in steps.asked


def test_a_node_that_is_not_ours_any_more_is_not_waited_for() -> None:
    node = Cluster(Round(given_up="the node has no mark of the run"))
    run = running(planned(), Steps(), *RESTORING, clusters={"h": node}, wait=60)
    restore(run, ["h"])
    assert state(run) is State.STUCK


@pytest.mark.parametrize(("events", "after"), [(DRAINED[:2], State.LEAVING),
                                               (DRAINED, State.UNCHANGED)])  # fmt: skip
def test_an_abort_returns_what_was_not_changed(events: tuple[Event, ...], after: State) -> None:
    run = running(planned(), Steps(), *events)
    leave(run, ["h"])
    assert state(run) is after


def test_the_end_of_a_run_leaves_unchanged_hosts_to_others() -> None:
    steps = Steps()
    run = running(planned(), steps, *DRAINED[:2], Event.NOT_DRAINED)
    assert runner.carry_on(run).event == "finished"
    assert steps.asked == ["release"]
    assert run.progress.run == "finished"


def test_hosts_that_were_changed_are_not_released() -> None:
    steps = Steps()
    release(running(planned(), steps, *CHANGING, Event.CHANGED, Event.RETURNED))
    assert steps.asked == []


def test_a_run_that_is_interrupted_while_it_leaves_hosts_is_not_over() -> None:
    steps = Steps()
    run = running(planned(), steps, *DRAINED[:2], Event.NOT_DRAINED, Event.RETURNED)
    steps.before = run.stop
    assert runner.carry_on(run).event == "interrupted"
    assert not run.progress.over


def test_a_change_without_a_gpu_pod_says_so() -> None:
    """A cluster that offers GPUs by DRA alone, or whose plugin never offered one."""
    node = Cluster(Round(drained=True))
    node.unchecked = {"h": "no GPU pod ran"}
    run = running(planned(), Steps(), *DRAINED, clusters={"h": node})
    change(run, ["h"])
    assert state(run) is State.CHANGED
    assert "no GPU pod ran" in run.progress.reasons["h"]


@pytest.mark.parametrize("result", [
    Result(False, "timed out", reached=False), Result(False, "GPU work", busy=True),
])  # fmt: skip
def test_time_in_which_no_process_was_there_is_no_wait(
    result: Result, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A controller that was off for hours knows nothing of a host that it misses at first."""
    events = (*DRAINED, Event.CHANGE_BEGAN, Event.CHANGE_FAILED, Event.RESTORE_BEGAN)
    run = running(planned(), Steps(result), *events, at=1000.0, wait=60)
    monkeypatch.setattr(run.stopping, "wait", lambda seconds: False)
    restore(run, ["h"])
    assert state(run) is State.RESTORING
    later = time.monotonic() + 601.0
    monkeypatch.setattr("time.monotonic", lambda: later)
    restore(run, ["h"])
    assert state(run) is State.STUCK


def test_clocks_that_jump_change_no_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """The record is from a later time than now, and the clock is set while the run waits."""
    run = running(planned(), Steps(), *DRAINED[:2], at=1e12, wait=60)
    assert run.progress.since["h"] <= run.clock.now()
    assert run.may_wait("h", "why")
    monkeypatch.setattr("time.time", lambda: 1e12)
    run.write(Event.DRAINED, "h")
    assert run.progress.since["h"] < 1e11
