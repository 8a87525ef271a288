"""The hosts of a run: groups, waves, hosts that are left out, resumed runs and roll-backs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gpufleet.core.stopped import Stopped
from gpufleet.drain.nodes import CORDONED, SKIPPED_BY_LABEL
from gpufleet.host.upgrade_settings import UpgradeSettings
from gpufleet.host.upgrade_state import HostState, Phase
from gpufleet.upgrade.look import NO_GPU_NOW
from gpufleet.upgrade.models import HostView, Plan
from gpufleet.upgrade.plan import (
    NEVER_A_GPU,
    make_plan,
    newest_changed,
    views_to_return,
    without_downgrade,
)
from gpufleet.upgrade.settings import load_upgrade_settings, of_run
from gpufleet.upgrade.subjects import DISABLED

pytestmark = pytest.mark.claim(
    "An upgrade groups hosts by GPU, distribution and kernel, with a canary in each "
    "group, waves, budgets and windows.",
    level=1,
)

A100, L40S = "1 x A100", "1 x L40S"


def view(name: str, model: str = A100, **more: Any) -> HostView:
    known = {"before": "1", "loaded": "1", "target": "2", **more}
    return HostView(name, model, "ubuntu2204", "5.15", **known)


def state(phase: str = "waiting", **more: Any) -> HostState:
    known = {"run": "old", "kind": "upgrade", "subject": "driver", "before": "1", "target": "2",
             "group": A100, "wave": 0, **more}  # fmt: skip
    return HostState(phase=Phase(phase), **known)


def plan(*views: HostView, how: dict[str, Any] | None = None, **settings: Any) -> Plan:
    chosen = UpgradeSettings.model_validate(settings)
    return make_plan(views, chosen, name="new", **(how or {}))


def code(error: pytest.ExceptionInfo[Stopped]) -> str:
    return error.value.findings[0].code


def test_each_group_has_a_canary_and_waves_have_one_place() -> None:
    views = [view(f"h{n}", place="ab"[n % 2]) for n in range(5)]
    others = [view("l1", L40S), view("l2", L40S)]
    found = plan(*views, *others, wave=2)
    assert found.waves == [["h0", "l1"], ["h1", "h3"], ["h2", "h4"], ["l2"]]
    assert plan(*views, canaries=9).waves == [[f"h{n}" for n in range(5)]]
    assert plan(*views, wave="50%", wave_by=None).waves[1:] == [["h1", "h3"], ["h2", "h4"]]


def test_who_is_left_out_and_why() -> None:
    found = plan(
        view("same", loaded="2", before="2"),
        view("packages", before="2"),
        view("refused", refusals=("GF052 GPUs are missing",)),
        view("skipped"),
        view("none", before=None),
        view("plane", refusals=(NEVER_A_GPU,)),
        how={"skipped": ["skipped"]},
    )
    assert list(found.hosts) == ["packages"]
    left = {each.name: (each.reason.split()[0], each.blocked) for each in found.left_out}
    assert left == {
        "same": ("already", False), "refused": ("GF052", True), "skipped": ("upgrade_skip", False),
        "none": ("it", True), "plane": ("no", False),
    }  # fmt: skip
    assert found.blocked


@pytest.mark.parametrize(
    ("refusal", "blocked"),
    [(CORDONED, False), (SKIPPED_BY_LABEL, False), (DISABLED["driver"], False), (NO_GPU_NOW, True)],
)
def test_what_a_user_decided_is_no_failure(refusal: str, blocked: bool) -> None:
    assert plan(view("h", refusals=(refusal,))).blocked is blocked


@pytest.mark.parametrize("code", ["GF112", "GF115", "GF160", "GF165"])
def test_a_host_that_can_never_have_the_target_is_no_failure_beside_others(code: str) -> None:
    old = view("old", target=None, refusals=(f"{code} It cannot be installed there.",))
    assert not plan(old, view("h")).blocked
    assert not plan(old, view("same", before="2", loaded="2")).blocked
    assert not plan(old, view("h", state=state("done"))).blocked
    assert plan(old).blocked
    assert plan(old, view("skipped"), how={"skipped": ["skipped"]}).blocked
    both = view("both", refusals=("GF111 Not in the catalog.", *old.refusals))
    assert plan(both, view("h")).blocked


def test_a_downgrade_is_refused() -> None:
    (finding,) = without_downgrade(view("h", before="580.10", target="580.9")).refusals
    assert finding.startswith("GF078 ")
    for before, target in (("580.9", "580.10"), ("580.9", "580.9"), (None, "1"), ("1", None)):
        assert not without_downgrade(view("h", before=before, target=target)).refusals


def test_a_host_that_was_left_out_of_service_is_changed_again_and_returned() -> None:
    there = {"before": "2", "loaded": "2"}
    found = plan(view("node", taken=True, **there), view("bare", state=state("stuck"), **there))
    assert (found.hosts["node"].out, found.hosts["bare"].out) == (True, True)
    found = plan(view("bare", state=state("stuck", out=True)))
    assert (found.hosts["bare"].out, found.hosts["bare"].phase) == (True, Phase.WAITING)


def test_an_unfinished_run_goes_on_with_its_hosts() -> None:
    found = plan(
        view("h", state=state("done", since=5.0)),
        view("i", state=state("changing", out=True, wave=1)),
        view("new"),
        view("away", reached=False, refusals=("GF009",), target=None),
        view("left", state=state("stuck", out=True, run="older")),
    )
    assert (found.run, found.resumed, found.unreached) == ("old", True, ("away",))
    assert found.behind == ("left",)
    assert list(found.hosts) == ["h", "i"]
    assert found.hosts["i"].phase is Phase.CHANGING
    assert {each.name: each.blocked for each in found.left_out} == {
        "new": True, "away": True, "left": True,
    }  # fmt: skip


def test_a_run_that_was_not_begun_is_planned_again() -> None:
    """The controller was killed while it wrote to its hosts."""
    found = plan(view("h", state=state()), view("i"))
    assert (found.run, found.resumed, list(found.hosts)) == ("old", False, ["h", "i"])


def test_an_ended_run_is_none_that_goes_on() -> None:
    found = plan(view("h", state=state("reverted")), view("i", state=state("passed")))
    assert (found.run, len(found.hosts)) == ("new", 2)


@pytest.mark.parametrize(
    "there",
    [
        {"target": "3"},
        {"subject": "toolkit"},
        {"kind": "rollback"},
    ],
)
def test_another_unfinished_run_is_named(there: dict[str, Any]) -> None:
    with pytest.raises(Stopped) as error:
        plan(view("h", state=state("prepared", **there)))
    assert code(error) == "GF062"


def test_a_run_whose_node_is_not_found_does_not_go_on() -> None:
    lost = view("h", state=state("changing", out=True), unplaced="GF067 …")
    with pytest.raises(Stopped) as error:
        plan(lost)
    assert code(error) == "GF074"


def test_a_roll_back_returns_what_the_newest_run_changed() -> None:
    views = [
        view("c", before="2", state=state("done", since=1.0)),
        view("h", before="2", state=state("done", since=9.0, wave=2)),
        view("r", state=state("reverted", since=9.0)),
        view("o", before="2", state=state("done", run="older", since=0.5)),
        view("x", before="3", state=state("done", since=2.0)),
        view("n"),
    ]
    found = make_plan(views_to_return(views), UpgradeSettings.model_validate({}),
                      kind="rollback", name="new")  # fmt: skip
    assert {n: (s.before, s.target, s.wave) for n, s in found.hosts.items()} == {
        "h": ("2", "1", 0), "c": ("2", "1", 2),
    }  # fmt: skip
    left = {each.name: each for each in found.left_out}
    assert left["x"].reason.startswith("GF071")
    assert [name for name, each in left.items() if each.blocked] == ["x"]


def test_a_roll_back_destroys_no_mig_devices() -> None:
    kept = view("h", before="2", state=state("done"), refusals=("GF154 …",))
    found = make_plan(views_to_return([kept, view("i", before="2", state=state("done"))]),
                      UpgradeSettings.model_validate({}), kind="rollback", name="new")  # fmt: skip
    assert list(found.hosts) == ["i"]
    assert [each.reason for each in found.left_out] == ["GF154 …"]


def test_a_roll_back_that_is_not_finished_goes_on() -> None:
    back = state("changing", kind="rollback", before="2", target="1", out=True)
    views = [view("h", before="2", state=back), view("i", before="2", state=state("done"))]
    assert newest_changed({each.name: each.state for each in views if each.state}) == back
    found = make_plan(views_to_return(views), UpgradeSettings.model_validate({}),
                      kind="rollback", name="new")  # fmt: skip
    assert list(found.hosts) == ["h", "i"]


@pytest.mark.parametrize("left", [[], ["reverted"], ["waiting"]])
def test_nothing_to_roll_back(left: list[str]) -> None:
    with pytest.raises(Stopped) as error:
        newest_changed({each: state(each) for each in left})
    assert code(error) == "GF065"
    with pytest.raises(Stopped):
        newest_changed({"h": replace(state("done"), subject="reboot")})


def test_stuck_hosts_alone_are_named() -> None:
    with pytest.raises(Stopped) as error:
        newest_changed({"h": state("stuck"), "i": state("reverted")})
    assert code(error) == "GF286"
    assert " h." in error.value.findings[0].message


def test_hosts_beside_a_stuck_one_are_rolled_back() -> None:
    views = [view("h", state=state("stuck")), view("i", before="2", state=state("done"))]
    found = make_plan(views_to_return(views), UpgradeSettings.model_validate({}),
                      kind="rollback", name="new")  # fmt: skip
    assert (list(found.hosts), found.behind) == (["i"], ("h",))
    assert [("release" in each.reason, each.blocked) for each in found.left_out] == [(True, True)]


def test_settings_of_a_run_are_the_same_for_all() -> None:
    one, other = UpgradeSettings(soak=1), UpgradeSettings(soak=2, wait=3)
    assert of_run({"a": one, "b": one.model_copy(update={"wait": 9})})[0] == one
    found = of_run({"a": one, "b": other})[1]
    assert found
    assert found.code == "GF068"
    assert of_run({}) == (None, None)


def test_misspelt_and_wrong_settings() -> None:
    settings, problems = load_upgrade_settings({"upgrade_waves": 1, "upgrade_soak": -1})
    assert (settings, len(problems)) == (None, 2)
