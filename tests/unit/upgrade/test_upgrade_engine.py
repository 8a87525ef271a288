"""A run against hosts and a cluster in memory, from its plan to its end."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gpufleet.core.stopped import Stopped
from gpufleet.host.upgrade_settings import UpgradeSettings
from gpufleet.host.upgrade_state import Phase, parse_state
from gpufleet.kube.findings import API_UNREACHABLE
from gpufleet.kube.operations.access import ClusterProblem
from gpufleet.kube.operations.refused import ApiError
from gpufleet.node.findings import OWN_PREFLIGHT
from gpufleet.run.report import HostReport
from gpufleet.upgrade.operations import planning
from gpufleet.upgrade.operations.loop import carry_on
from gpufleet.upgrade.operations.planning import UpgradeTarget, begin_run, read_run_hosts
from gpufleet.upgrade.operations.result import step_result
from gpufleet.upgrade.subjects import WantedChange
from tests.fakes.upgrade_fleet import MONDAY, NEW, OLD, Killed, Machine, Pull, World, fleet_of

pytestmark = pytest.mark.claim(
    "An upgrade goes on after a kill at any moment, against fakes of hosts and clusters.",
    level=1,
)

AWAY = ClusterProblem(API_UNREACHABLE(context="c", url="u", reason="r"))


def world(*names: str, how: dict[str, Any] | None = None, **settings: Any) -> World:
    wanted = {"soak": 0, "max_failed": 9, "max_failed_in_a_row": 9, **settings}
    return World(
        fleet_of(*(names or ("h",)), **(how or {})), UpgradeSettings.model_validate(wanted)
    )


def phase(fleet: World, name: str = "h") -> str:
    state = fleet.machines[name].state
    assert state
    return state.phase.value


def why(fleet: World, name: str = "h") -> str:
    state = fleet.machines[name].state
    assert state
    return state.why


def phases(fleet: World, name: str = "h") -> list[str]:
    found = [each for host, each in fleet.phases if host == name]
    return [each for n, each in enumerate(found) if n == 0 or each != found[n - 1]]


def until(fleet: World, count: int, act: Any) -> None:
    """Call `act` at this moment of the run, counted from one."""
    left = [count]

    def moment() -> None:
        left[0] -= 1
        if left[0] == 0:
            act()

    fleet.moment = moment


@pytest.mark.parametrize("node", [False, True])
def test_hosts_change_one_after_the_other(node: bool) -> None:
    fleet = world("h", "i", how={"node": node})
    assert fleet.carried_out() == "finished"
    assert phases(fleet) == ["waiting", "prepared", "draining", "changing", "done"]
    assert fleet.phases.index(("h", "done")) < fleet.phases.index(("i", "draining"))
    for machine in fleet.machines.values():
        assert (machine.version, machine.cordon, machine.checks) == (NEW, "", int(node))
    assert (fleet.broke, fleet.nodes.kured.held) == ([], False)


def test_work_is_waited_for_and_not_for_ever() -> None:
    fleet = world(how={"job": True, "node": True}, wait=300)
    assert fleet.carried_out() == "finished"
    assert (phase(fleet), fleet.machines["h"].installs) == ("passed", [])
    assert "it is of a Job" in why(fleet)
    assert not fleet.machines["h"].cordon
    fleet = world(how={"job": True}, wait=3600)
    until(fleet, 20, lambda: setattr(fleet.machines["h"], "job", False))
    fleet.carried_out()
    assert phase(fleet) == "done"


def test_a_host_that_cannot_be_prepared_is_not_disturbed() -> None:
    fleet = world(how={"refuses": True, "node": True})
    fleet.carried_out()
    assert (phases(fleet)[-1], why(fleet)) == ("passed", "GF051")
    assert "draining" not in phases(fleet)


def test_a_host_that_fails_gets_its_earlier_version_back() -> None:
    fleet = world("h", "i", how={"broken": True, "node": True})
    assert fleet.carried_out().startswith("stopped: a canary failed: h")
    assert phases(fleet) == ["waiting", "prepared", "draining", "changing", "restoring", "reverted"]
    machine = fleet.machines["h"]
    assert (machine.version, machine.installs, machine.cordon) == (OLD, [NEW, OLD], "")
    assert (phase(fleet, "i"), why(fleet, "i")) == ("passed", "the canary of its group failed")


def test_a_host_whose_roll_back_fails_stays_out_of_service_with_the_reason() -> None:
    fleet = world("h", how={"broken": True, "lost": True, "node": True})
    fleet.carried_out()
    machine = fleet.machines["h"]
    assert (phase(fleet), bool(machine.cordon)) == ("stuck", True)
    assert machine.marked == why(fleet) == "GF054 not as before; its change: GF054 not as before"
    again = world("h")
    again.machines["h"] = machine
    machine.marked = ""
    assert again.planned().hosts["h"].out  # repaired by hand, it is taken over
    machine.broken = machine.lost = False
    again.carried_out()
    assert (phase(again), machine.cordon) == ("done", "")


@pytest.mark.parametrize("asked", ["pause", "abort", ""])
def test_a_host_that_was_left_behind_is_returned_once_it_is_checked_alone(asked: str) -> None:
    fleet = world("h", how={"broken": True, "lost": True, "node": True}, wait=60)
    fleet.carried_out()
    machine = fleet.machines["h"]
    machine.job = True  # of a user who repairs it
    run = fleet.started(fleet.planned("again"))

    def ask() -> None:
        run.asked = run.asked or (asked if phase(fleet) == "draining" else "")

    fleet.moment = ask
    carry_on(run, fleet.workers)
    assert phase(fleet) == ("prepared" if asked == "pause" else "stuck")
    assert machine.cordon
    assert machine.marked


def test_a_stuck_host_is_marked_again_by_a_later_process() -> None:
    fleet = world("h", "i", how={"broken": True, "lost": True, "node": True}, canaries=2)
    fleet.nodes.problems["leave_behind"] = AWAY
    until(fleet, 10_000, lambda: None)
    fleet.carried_out()
    assert not fleet.machines["h"].marked
    assert any("no mark of its failure" in line for line in fleet.said)


def test_work_that_came_after_the_drain_is_not_ended() -> None:
    fleet = world(wait=60)

    def come() -> None:
        fleet.machines["h"].intruder = bool(fleet.phases) and phases(fleet)[-1] == "changing"

    fleet.moment = come
    fleet.carried_out()
    assert (phase(fleet), fleet.machines["h"].installs) == ("passed", [])
    assert why(fleet).startswith("GF072")


@pytest.mark.parametrize("silent", [3, 10**6])
def test_a_host_that_does_not_answer_is_waited_for(silent: int) -> None:
    fleet = world("h", "i", max_unavailable=1, wait=60)
    until(fleet, 9, lambda: setattr(fleet.machines["h"], "silent", silent))
    end = fleet.carried_out()
    if silent == 3:
        assert (end, phase(fleet, "i")) == ("finished", "done")
    else:
        assert end == "hosts could not be finished"
        assert [finding.code for finding in fleet.run.given_up.values()]
        assert phase(fleet, "i") == "waiting"
        fleet.machines["h"].silent = 0
        assert fleet.carried_out() == "finished"
        assert (phase(fleet), phase(fleet, "i")) == ("done", "done")
    assert fleet.machines["h"].installs == [NEW]


def kill_while_h_changes(fleet: World) -> None:
    """Carry the run out until the change of host h has begun."""

    def kill() -> None:
        if fleet.phases and fleet.phases[-1] == ("h", "changing"):
            raise Killed

    fleet.moment = kill
    with pytest.raises(Killed):
        fleet.carried_out()
    fleet.moment = lambda: None


def test_a_kill_at_each_moment_repeats_nothing() -> None:
    for count in range(1, 60):
        fleet = world("h", "i", how={"node": True})

        def kill() -> None:
            raise Killed

        until(fleet, count, kill)
        try:
            fleet.carried_out()
            killed = False
        except Killed:
            killed = True
            fleet.carried_out()
        assert [m.installs for m in fleet.machines.values()] == [[NEW], [NEW]], count
        assert not any(m.cordon for m in fleet.machines.values()), count
        assert fleet.broke == []
        if not killed:
            return
    pytest.fail("it was killed at each moment")


def test_a_pause_gives_drains_up_and_goes_on_later() -> None:
    fleet = world("h", how={"job": True, "node": True})
    until(fleet, 12, lambda: setattr(fleet.run, "asked", "pause"))
    assert fleet.carried_out() == "paused"
    assert (phase(fleet), fleet.machines["h"].cordon) == ("prepared", "")
    fleet.moment = lambda: None
    fleet.machines["h"].job = False
    assert fleet.planned().resumed
    assert fleet.carried_out() == "finished"
    assert phase(fleet) == "done"


def test_an_abort_finishes_what_was_changed_and_releases_the_rest() -> None:
    fleet = world("h", "i", "j", how={"node": True}, canaries=3, max_unavailable=2)
    fleet.machines["i"].job = True
    kill_while_h_changes(fleet)
    fleet.machines["h"].version = NEW
    assert fleet.carried_out(asked="abort") == "aborted"
    found = {name: phase(fleet, name) for name in fleet.machines}
    assert found == {"h": "done", "i": "passed", "j": "passed"}
    assert not any(machine.cordon for machine in fleet.machines.values())


@pytest.mark.parametrize(
    ("how", "ends", "installs"),
    [
        ({}, "passed", []),
        ({"half": True}, "reverted", []),
        ({"loaded": "none"}, "reverted", []),
        ({"version": NEW}, "done", []),
    ],
    ids=["nothing was done", "only pins were changed", "no module", "packages were changed"],
)
def test_an_abort_installs_nothing_on_a_host_with_its_earlier_driver(
    how: dict[str, Any], ends: str, installs: list[str]
) -> None:
    fleet = world("h", how={"node": True})
    kill_while_h_changes(fleet)
    machine = fleet.machines["h"]
    for name, value in how.items():
        setattr(machine, name, value)
    assert fleet.carried_out(asked="abort") == "aborted"
    assert (phase(fleet), machine.installs, machine.cordon) == (ends, installs, "")


def test_an_abort_waits_for_a_host_that_may_be_unchanged() -> None:
    fleet = world("h")
    kill_while_h_changes(fleet)
    run = fleet.started()
    run.asked, fleet.machines["h"].silent = "abort", 2
    assert carry_on(run, fleet.workers) == "aborted"
    assert (phase(fleet), fleet.machines["h"].installs) == ("passed", [])


def test_a_roll_back_returns_the_hosts() -> None:
    fleet = world("h", "i", how={"node": True})
    fleet.carried_out()
    views = planning.views_to_return(
        [replace(view, before=NEW, loaded=NEW) for view in fleet.views()]
    )
    plan = planning.make_plan(views, fleet.settings, kind="rollback", name="back")
    assert fleet.carried_out(plan) == "finished"
    assert [m.version for m in fleet.machines.values()] == [OLD, OLD]
    assert {phase(fleet, name) for name in fleet.machines} == {"done"}


def test_a_cordon_of_ours_that_no_state_knows_is_taken_back() -> None:
    fleet = world("h", how={"node": True})
    fleet.carried_out()
    fleet.machines["h"].cordon = "lost"
    assert fleet.views()[0].taken
    fleet.carried_out()
    assert fleet.machines["h"].cordon == ""


def test_a_user_who_cordons_first_keeps_the_node() -> None:
    fleet = world("h", how={"node": True, "user_cordon": True})
    fleet.carried_out()
    assert (phase(fleet), fleet.machines["h"].user_cordon) == ("passed", True)


@pytest.mark.parametrize(
    ("pull", "ends"),
    [
        (Pull("image", "no such image"), "passed"),
        (Pull("disk", "full"), "passed"),
        (Pull("later", "the node is short of memory"), "passed"),
    ],
)
def test_a_node_that_could_not_be_checked_is_not_changed(pull: Pull, ends: str) -> None:
    """If the image may be pulled later, the run tries again after the drain."""
    fleet = world("h", how={"node": True}, wait=60)
    fleet.nodes.pulls["h"] = pull
    fleet.carried_out()
    assert (phase(fleet), fleet.machines["h"].installs) == (ends, [])
    assert why(fleet).startswith("GF073")
    assert ("draining" in phases(fleet)) is (pull.came == "later")


@pytest.mark.parametrize("door", ["check_refused", "drain", "clear", "check", "give_back", "look"])
def test_a_cluster_that_is_away_for_a_moment_ends_no_run(door: str) -> None:
    fleet = world("h", how={"node": True})
    fleet.nodes.problems[door] = AWAY

    def back() -> None:
        if fleet.now > MONDAY + 200:
            fleet.nodes.problems.clear()

    fleet.moment = back
    if door == "look":
        with pytest.raises(ClusterProblem):  # it is asked first of all
            fleet.carried_out()
        return
    assert fleet.carried_out() == "finished"
    assert (phase(fleet), fleet.machines["h"].installs) == ("done", [NEW])


def test_a_cluster_that_refuses_a_return_ends_the_run_after_the_others() -> None:
    fleet = world("h", "i", how={"node": True}, canaries=2, max_unavailable=2)
    fleet.nodes.problems["give_back"] = ApiError("PATCH", 403, {}, "c")
    assert fleet.carried_out() == "hosts could not be finished"
    assert [each.code for each in fleet.run.given_up.values()] == ["GF278", "GF278"]
    fleet.nodes.problems.clear()
    assert fleet.carried_out() == "finished"
    assert not any(machine.cordon for machine in fleet.machines.values())


def test_kured_waits_for_the_run_and_the_run_for_kured() -> None:
    fleet = world("h", how={"node": True})
    fleet.nodes.kured.others = ("n7",)

    def free() -> None:
        if fleet.now > MONDAY + 2000:
            fleet.nodes.kured.others = ()

    fleet.moment = free
    held: list[bool] = []
    step = fleet.step
    fleet.step = lambda *words: held.append(fleet.nodes.kured.held) or step(*words)  # type: ignore
    assert fleet.carried_out() == "finished"
    assert any("its DaemonSet, held by n7" in line for line in fleet.said)
    assert held[-1]
    assert not fleet.nodes.kured.held


@pytest.mark.parametrize("fails", ["", "drain", "check", "ready"])
def test_commands_of_the_user_are_run_around_a_change(fails: str, tmp_path: Any) -> None:
    log = tmp_path / "log"

    def command(word: str) -> str:
        return f"sh -c 'echo {word} {{host}} >>{log}; test {word} != {fails or 'none'}'"

    words = {f"{word}_command": command(word) for word in ("drain", "check", "ready")}
    fleet = world("h", "i", **words)
    end = fleet.carried_out()
    lines = log.read_text().splitlines()
    if fails == "drain":
        assert (phase(fleet), why(fleet)) == (
            "passed", "upgrade_drain_command: exit status 1: no output",
        )  # fmt: skip
        assert lines[:2] == ["drain h", "ready h"]
    elif fails == "check":
        assert phase(fleet) == "reverted"
        assert lines == ["drain h", "check h", "ready h"]
    elif fails == "ready":
        assert end == "hosts could not be finished"
        assert fleet.run.given_up["h"].code == "GF066"
        assert fleet.carried_out(asked="abort") == "aborted"  # the failure is ignored
        assert not fleet.machines["h"].state.out  # type: ignore[union-attr]
    else:
        wanted = [f"{word} {name}" for name in "hi" for word in ("drain", "check", "ready")]
        assert (lines, why(fleet)) == (wanted, "")


def test_a_command_that_cannot_be_started_is_named() -> None:
    fleet = world("h", drain_command="/no/such/program {host}")
    fleet.carried_out()
    assert "cannot be started" in why(fleet)


def test_another_process_at_work_on_a_host_keeps_a_run_from_beginning(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(planning, "PAUSE", 0.0)
    fleet = world("h", "i")
    fleet.machines["i"].held_by = "ops@other, process 7"
    with pytest.raises(Stopped) as error:
        fleet.carried_out()
    assert error.value.findings[0].code == "GF061"
    assert not fleet.phases


def test_a_host_that_is_lost_while_the_run_begins_is_not_in_it() -> None:
    fleet = world("h", "i")
    plan = fleet.planned()
    fleet.machines["h"].silent = 10**6
    found = begin_run(planning.PlannedRun(plan, {}, {}), fleet, 5.0).plan
    assert list(found.hosts) == ["i"]
    assert [(each.name, each.blocked) for each in found.left_out] == [("h", True)]
    assert not found.unreached  # it was in service a moment ago
    assert parse_state(fleet.machines["i"].file).since == 5.0  # type: ignore[union-attr]


def test_a_plan_shows_each_text_of_the_preflights() -> None:
    texts = [OWN_PREFLIGHT(file="f", name="n", problem=text) for text in "abcd"]
    report = HostReport("h", status="failed", findings=list(texts))
    fleet = world("h")
    fleet.look = lambda *_: step_result(report, touched=False)  # type: ignore[method-assign]
    plan = read_run_hosts([target("h")], fleet, WantedChange(version=NEW), (), name="r").plan
    assert [each.reason for each in plan.left_out] == [", ".join(each.text for each in texts)]


def target(name: str, **data: Any) -> UpgradeTarget:
    return UpgradeTarget(name, {"driver_branch": "580", **data})


class Reading(World):
    """Hosts whose step `look` reads versions."""

    def look(self, name: str, version: str = "", branch: str = "") -> Any:
        found = super().look(name)
        there = self.machines[name].version
        plan = {"before": there, "loaded": there, "target": version or NEW, **found.plan}
        return replace(found, plan=plan)


def test_a_fleet_is_read_with_its_settings() -> None:
    fleet = Reading({n: Machine(n, job=n == "b") for n in ("a", "b", "s", "away")})
    fleet.machines["away"].silent = 10**6
    targets = [
        target("a", node_reboot="if_needed"),
        target("b"),
        target("s", upgrade_skip=True, upgrade_soak=9),
        target("away"),
    ]
    found = read_run_hosts(targets, fleet, WantedChange(version=NEW), [], name="r")
    assert list(found.plan.hosts) == ["a", "b"]
    assert found.plan.unreached == ("away",)
    assert found.work["b"] == ("train",)
    assert {n: found.settings[n].drain for n in "ab"} == {"a": "all", "b": "gpu"}
    assert "a" not in found.reboots
    with pytest.raises(Stopped) as error:
        read_run_hosts([target("a", upgrade_sook=1)], fleet, WantedChange(), [], name="r")
    assert error.value.findings[0].code == "GF068"
    with pytest.raises(Stopped) as error:
        read_run_hosts(
            [target("a", upgrade_soak=1), target("b")], fleet, WantedChange(), [], name="r"
        )
    assert error.value.findings[0].code == "GF068"


def test_a_roll_back_finds_its_subject_on_the_hosts() -> None:
    fleet = Reading(fleet_of("h"))
    with pytest.raises(Stopped) as error:
        read_run_hosts([target("h")], fleet, WantedChange(), [], "rollback", name="r")
    assert error.value.findings[0].code == "GF065"
    fleet.carried_out()
    found = read_run_hosts([target("h")], fleet, WantedChange(), [], "rollback", name="r")
    assert {n: s.target for n, s in found.plan.hosts.items()} == {"h": OLD}


@pytest.mark.parametrize("version", [OLD, NEW])
def test_a_stuck_host_is_released_in_the_version_that_it_has(version: str) -> None:
    fleet = Reading(fleet_of("h", "i", broken=True, lost=True), UpgradeSettings(canaries=2))
    targets = [target("h"), target("i")]
    with pytest.raises(Stopped) as error:
        read_run_hosts(targets, fleet, WantedChange(), [], name="r", release=True)
    assert error.value.findings[0].code == "GF079"
    fleet.carried_out(fleet.planned(), "")
    assert phase(fleet) == "stuck"
    machine = fleet.machines["h"]
    machine.broken, machine.lost, machine.version = False, False, version  # repaired
    found = read_run_hosts([target("h")], fleet, WantedChange(), [], name="out", release=True).plan
    assert {n: (s.before, s.target, s.out) for n, s in found.hosts.items()} == {
        "h": (version, version, True)
    }
    fleet.carried_out(found)
    assert (phase(fleet), machine.version) == ("done", version)
    assert ("h: checking" in fleet.said, fleet.said.count("h: changing")) == (True, 1), "the run's"
    with pytest.raises(Stopped, match="GF065"):  # there is nothing to roll back
        read_run_hosts([target("h")], fleet, WantedChange(), [], "rollback", name="back")


def test_a_released_host_that_is_not_sound_stays_out_of_service() -> None:
    fleet = Reading(fleet_of("h", broken=True, lost=True))
    fleet.carried_out()
    found = read_run_hosts([target("h")], fleet, WantedChange(), [], name="out", release=True).plan
    fleet.carried_out(found)
    assert phase(fleet) == "stuck"


@pytest.mark.parametrize("drain", ["auto", "gpu", "all"])
def test_every_pod_leaves_a_node_that_is_rebooted(drain: str) -> None:
    """A reboot would kill every pod that stays."""
    one = target("h", upgrade_drain=drain)
    assert planning._settings(one, "reboot").drain == "all"
    assert planning._settings(one, "driver").drain == ("all" if drain == "all" else "gpu")


def test_what_was_passed_says_why_in_the_log() -> None:
    fleet = world(how={"refuses": True})
    fleet.carried_out()
    assert fleet.said[-1] == "h: passed: GF051"
    assert phase(fleet) == Phase.PASSED
