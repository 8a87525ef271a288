"""Groups, canaries, waves, and who is left out."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, get_args

import pytest

from gpufleet.upgrade.decide import Act, Around, Do, End, Wait, decide
from gpufleet.upgrade.load import load_settings, of_run
from gpufleet.upgrade.look import NO_GPU_NOW
from gpufleet.upgrade.models import HostView, Plan
from gpufleet.upgrade.nodes import MARK, SKIP, why_not_begun
from gpufleet.upgrade.plan import NEVER_A_GPU, make_plan, reversed_plan
from gpufleet.upgrade.progress import Entry, Progress
from gpufleet.upgrade.settings import UpgradeSettings
from gpufleet.upgrade.states import Event, State
from gpufleet.upgrade.subjects import DISABLED, Subject

HOST = HostView("h", "1 x A100", "debian12", "6.1", "580.1.1", "580.1.1", "580.2.2")


def settings(**data: Any) -> UpgradeSettings:
    return UpgradeSettings.model_validate(data)


def fleet(*models: str) -> list[HostView]:
    return [replace(HOST, name=f"h{n}", model=model) for n, model in enumerate(models)]


def reasons(plan: Plan) -> dict[str, str]:
    return {each.name: each.reason for each in plan.left_out}


def done(progress: Progress, name: str, time: float, *events: Event) -> None:
    walk = events or (
        Event.PREPARED, Event.DRAIN_BEGAN, Event.DRAINED, Event.CHANGE_BEGAN, Event.CHANGED,
        Event.RETURNED,
    )  # fmt: skip
    for event in walk:
        progress.add(Entry(time, event.value, name))


FAILS = (
    Event.PREPARED, Event.DRAIN_BEGAN, Event.DRAINED, Event.CHANGE_BEGAN, Event.CHANGE_FAILED,
    Event.RESTORE_BEGAN, Event.RESTORED, Event.RETURNED,
)  # fmt: skip


def test_each_group_has_a_canary() -> None:
    plan = make_plan(fleet("a", "a", "b", "a", "b"), settings(wave=2))
    assert [(wave.hosts, wave.canary) for wave in plan.waves] == [
        (("h0", "h2"), True), (("h1", "h3"), False), (("h4",), False)
    ]  # fmt: skip


def test_a_group_is_of_gpus_distribution_and_kernel() -> None:
    hosts = [HOST, replace(HOST, name="i", kernel="6.8"), replace(HOST, name="j", distribution="d")]
    assert len(make_plan(hosts, settings()).groups) == 3


def test_a_wave_has_one_value_of_the_key() -> None:
    hosts = [replace(HOST, name=f"h{n}", place=f"rack{n % 2}") for n in range(7)]
    plan = make_plan(hosts, settings(wave=10, wave_by="rack"))
    assert [wave.hosts for wave in plan.waves[1:]] == [("h1", "h3", "h5"), ("h2", "h4", "h6")]


def test_who_is_left_out_and_why() -> None:
    hosts = [
        HOST,
        replace(HOST, name="same", before="580.2.2", loaded="580.2.2"),
        replace(HOST, name="skip"),
        replace(HOST, name="none", target=None),
        replace(HOST, name="bare", before=None, loaded=None),
        replace(HOST, name="sick", refusals=("GF052 it is",)),
    ]
    plan = make_plan(hosts, settings(), ["skip"])
    assert [host.name for host in plan.hosts] == ["h"]
    assert list(reasons(plan)) == ["same", "skip", "none", "bare", "sick"]
    assert reasons(plan)["sick"] == "GF052 it is"


def node(**spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "n", **spec.pop("metadata", {})}, "spec": spec}


@pytest.mark.parametrize(
    ("there", "blocked"),
    [
        (node(unschedulable=True), False),
        (node(metadata={"labels": {SKIP: "true"}}), False),
        (node(metadata={"annotations": {MARK: '{"run": "other"}'}}), True),
        (node(), True),  # not Ready
    ],
)
def test_a_node_that_no_user_holds_back_is_blocked(there: dict[str, Any], blocked: bool) -> None:
    held = replace(HOST, refusals=(why_not_begun(there, ""),))
    assert make_plan([held], settings()).blocked is blocked


@pytest.mark.parametrize(
    "change",
    [{"before": None, "loaded": None}, {"refusals": (NO_GPU_NOW,)}, {"target": None}],
)
def test_a_host_that_is_left_out_without_a_code_is_blocked(change: dict[str, Any]) -> None:
    """The exit status says that every host has the target, or is left out on purpose."""
    assert make_plan([replace(HOST, **change)], settings()).blocked


@pytest.mark.parametrize("subject", get_args(Subject))
def test_a_host_whose_role_is_off_is_left_out_on_purpose(subject: Subject) -> None:
    assert not make_plan([replace(HOST, refusals=(DISABLED[subject],))], settings()).blocked


def test_a_control_plane_without_gpus_is_left_out_on_purpose() -> None:
    """Whatever else is said of it: nothing is to be changed there."""
    for refusals in ((NEVER_A_GPU,), ("GF067 Cluster of the node is not known", NEVER_A_GPU)):
        assert not make_plan([replace(HOST, refusals=refusals)], settings()).blocked


def test_a_host_that_a_finding_keeps_out_is_blocked() -> None:
    """Unlike one that has the target, that is skipped, or whose node another user holds."""
    finding, held = "GF005 Cannot connect", "another user cordoned the node"
    hosts = [
        replace(HOST, name="away", target=None, refusals=(finding,)),
        replace(HOST, name="blocked", refusals=(held, finding)),
        replace(HOST, name="there", before="580.2.2", loaded="580.2.2", refusals=(finding,)),
        replace(HOST, name="skipped", refusals=(finding,)),
        replace(HOST, name="held", refusals=(held,)),
    ]
    plan = make_plan(hosts, settings(), skipped=["skipped"])
    assert [each.name for each in plan.left_out if each.blocked] == ["away", "blocked"]
    assert plan.blocked
    assert not make_plan(hosts[2:], settings(), skipped=["skipped"]).blocked


def test_packages_alone_are_not_the_target() -> None:
    waits = replace(HOST, before="580.2.2")  # for a reboot
    assert make_plan([waits], settings()).hosts


def test_a_plan_survives_its_record() -> None:
    plan = make_plan(fleet("a", "b", "b"), settings(window="Mon 09:00-10:00"), ["h1"])
    assert Plan.from_dict(plan.as_dict()) == plan


def test_the_way_back_is_in_reverse() -> None:
    plan = make_plan(fleet("a", "a", "a"), settings(wave=1))
    back = reversed_plan(plan, ["h0", "h2"])
    assert [wave.hosts for wave in back.waves] == [("h2",), ("h0",)]
    assert {(host.before, host.target) for host in back.hosts} == {("580.2.2", "580.1.1")}


def test_settings_of_a_run_are_the_same_for_all() -> None:
    same, problem = of_run({"a": settings(soak=1), "b": settings(soak=1, wait=5)})
    assert same
    assert problem is None
    _, problem = of_run({"a": settings(soak=1), "b": settings(soak=2)})
    assert problem
    assert "upgrade_soak is 1 for a and 2 for b" in problem.message


def test_misspelt_and_wrong_settings() -> None:
    _, problems = load_settings({"upgrade_sok": 3, "driver_branch": "580"})
    assert "upgrade_soak" in problems[0].remedy
    _, problems = load_settings({"upgrade_window": "sometimes", "upgrade_max_unavailable": "0%"})
    assert len(problems) == 2


def test_the_canary_soaks_before_the_wave() -> None:
    progress = Progress(make_plan(fleet("a", "a"), settings(soak=300)))
    done(progress, "h0", 1000)
    assert decide(progress, Around(1200)) == Wait(1300, "soak")
    assert decide(progress, Around(1300)) == Act(Do.PREPARE, ("h1",))


def test_a_failed_canary_stops_its_group_alone() -> None:
    progress = Progress(make_plan(fleet("a", "b", "a", "b"), settings(soak=0, max_unavailable=4)))
    done(progress, "h0", 1000, *FAILS)
    done(progress, "h1", 1000)
    assert decide(progress, Around(2000)) == Act(Do.PREPARE, ("h3",))
    done(progress, "h3", 2000)
    assert decide(progress, Around(2001)) == End("stopped", "the canary failed: a, debian12, 6.1")


def test_another_host_takes_the_place_of_a_canary_that_was_passed_over() -> None:
    progress = Progress(
        make_plan(fleet("a", "a", "a"), settings(soak=60, max_unavailable=3, wave=3))
    )
    done(progress, "h0", 1000, Event.REFUSED)
    assert decide(progress, Around(1000)) == Act(Do.PREPARE, ("h1",))
    done(progress, "h1", 1000, *FAILS)
    assert isinstance(decide(progress, Around(1001)), End)


def test_the_budget_stops_the_run() -> None:
    hosts = fleet(*"abcdef")
    for limit in ({"max_failed_in_a_row": 2}, {"max_failed": 2, "max_failed_in_a_row": 9}):
        progress = Progress(make_plan(hosts, settings(soak=0, **limit)))
        done(progress, "h0", 1000, *FAILS)
        assert isinstance(decide(progress, Around(1001)), Act)
        done(progress, "h1", 1000, *FAILS)
        end = decide(progress, Around(1001))
        assert isinstance(end, End)
        assert end.event == "stopped"


def test_no_host_is_begun_outside_of_the_window() -> None:
    progress = Progress(make_plan(fleet("a"), settings(window="Mon 09:00-10:00")))
    tuesday = 1_795_500_000.0
    wait = decide(progress, Around(tuesday))
    assert isinstance(wait, Wait)
    assert wait.reason == "window Mon 09:00-10:00 UTC"
    assert isinstance(decide(progress, Around(wait.until)), Act)
    done(progress, "h0", tuesday, Event.PREPARED, Event.DRAIN_BEGAN, Event.DRAINED)
    assert decide(progress, Around(tuesday)) == Act(
        Do.CHANGE, ("h0",)
    )  # what was begun is finished


def test_a_host_that_waits_does_not_keep_others_from_their_turn() -> None:
    plan = make_plan(fleet("a", "a", "a"), settings(soak=0, max_unavailable=2, wave=2))
    progress = Progress(plan)
    done(progress, "h0", 1000)
    for name in ("h1", "h2"):
        done(progress, name, 1000, Event.PREPARED, Event.DRAIN_BEGAN)
    done(progress, "h2", 1000, Event.DRAINED)
    assert decide(progress, Around(1001)) == Act(Do.CHANGE, ("h2",))


def test_requests_finish_what_was_begun() -> None:
    progress = Progress(make_plan(fleet("a", "a"), settings(soak=0)))
    done(progress, "h0", 1000, Event.PREPARED, Event.DRAIN_BEGAN)
    assert decide(progress, Around(1001, request="pause")) == Act(Do.DRAIN, ("h0",))
    assert decide(progress, Around(1001, request="abort")) == Act(Do.LEAVE, ("h0",))
    done(progress, "h0", 1000, Event.DRAINED, Event.CHANGE_BEGAN)
    assert decide(progress, Around(1001, request="abort")) == Act(Do.CHANGE, ("h0",))
    done(progress, "h0", 1000, Event.CHANGED, Event.RETURNED)
    assert decide(progress, Around(1001, request="pause")) == End("paused", "pause was requested")
    assert decide(progress, Around(1001, request="abort")) == End("aborted", "abort was requested")


def test_an_abort_returns_drained_hosts_as_they_are() -> None:
    progress = Progress(make_plan(fleet("a", "a"), settings(soak=0)))
    done(progress, "h0", 1000, Event.PREPARED, Event.DRAIN_BEGAN, Event.DRAINED)
    assert decide(progress, Around(1001)) == Act(Do.CHANGE, ("h0",))
    assert decide(progress, Around(1001, request="abort")) == Act(Do.LEAVE, ("h0",))
    done(progress, "h0", 1000, Event.NOT_REACHED)
    assert decide(progress, Around(1001, request="abort")) == Act(Do.RETURN, ("h0",))
    done(progress, "h0", 1000, Event.RETURNED)
    assert progress.states["h0"] is State.NOT_REACHED
    assert progress.failures == 0


def test_nodes_that_are_away_count_as_unavailable() -> None:
    progress = Progress(make_plan(fleet("a", "b"), settings(soak=0, max_unavailable=2)))
    done(progress, "h0", 1000, Event.PREPARED)
    done(progress, "h1", 1000, Event.PREPARED)
    assert decide(progress, Around(1001)) == Act(Do.DRAIN, ("h0", "h1"))
    assert decide(progress, Around(1001, away=("x",))) == Act(Do.DRAIN, ("h0",))
    waits = decide(progress, Around(1001, away=("x", "y")))
    assert waits == Wait(1061, "nodes that are not Ready: x, y")


def test_no_host_is_taken_out_of_service_while_an_alert_fires() -> None:
    progress = Progress(make_plan(fleet("a", "a"), settings(soak=0, max_unavailable=2)))
    done(progress, "h0", 1000, Event.PREPARED)
    alarm = Around(1001, alerts=("NodeDown",))
    assert decide(progress, alarm) == Wait(1061, "end of alerts: NodeDown")
    done(progress, "h0", 1000, Event.DRAIN_BEGAN, Event.DRAINED)
    assert decide(progress, alarm) == Act(Do.CHANGE, ("h0",))  # what was begun is finished


def test_a_window_is_of_the_time_of_day() -> None:
    """Whatever the clock of the record says."""
    progress = Progress(make_plan(fleet("a"), settings(window="00:00-12:00")))
    done(progress, "h0", 1000, Event.PREPARED)
    morning, evening = 6 * 3600.0, 18 * 3600.0
    assert isinstance(decide(progress, Around(evening, wall=morning)), Act)
    assert decide(progress, Around(0.0, wall=evening)) == Wait(6 * 3600.0, "window 00:00-12:00 UTC")


def test_hosts_left_behind_count_as_unavailable() -> None:
    progress = Progress(make_plan(fleet("a", "b"), settings(soak=0, max_failed_in_a_row=5)))
    done(progress, "h0", 1000, *FAILS[:-2], Event.RESTORE_FAILED)
    assert progress.states["h0"] is State.STUCK
    done(progress, "h1", 1000, Event.PREPARED)
    assert decide(progress, Around(1001)) == End(
        "stopped", "left behind out of service: h0 (upgrade_max_unavailable)"
    )
