"""The next action for each host: waves, canaries, soak, budget, window, room."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

import pytest

from gpufleet.host.upgrade_settings import UpgradeSettings
from gpufleet.host.upgrade_state import HostState, Phase
from gpufleet.upgrade.decide import RECHECK_SECONDS, Around, Decision, Do, Host, decide_acts

NOW = 10_000.0


def host(name: str, phase: str = "waiting", wave: int = 0, **more: Any) -> Host:
    of_state = {key: more.pop(key) for key in ("out", "since", "group", "kind") if key in more}
    kind = of_state.pop("kind", "upgrade")
    group = of_state.pop("group", "a")
    state = HostState("r", kind, "driver", "1", "2", group, wave, Phase(phase), **of_state)
    return Host(name, state, **more)


def decided(*hosts: Host, around: Around | None = None, **limits: Any) -> Decision:
    return decide_acts(hosts, UpgradeSettings.model_validate(limits), around or Around(NOW))


def acts(*hosts: Host, around: Around | None = None, **limits: Any) -> dict[str, str]:
    return {n: do.value for n, do in decided(*hosts, around=around, **limits).acts.items()}


@pytest.mark.parametrize(
    ("phase", "how", "do"),
    [
        ("draining", {}, "drain"),
        ("draining", {"idle": True}, "change"),
        ("changing", {}, "change"),
        ("restoring", {}, "roll back"),
        ("done", {"out": True}, "return"),
        ("reverted", {"out": True}, "return"),
        ("passed", {"out": True}, "return"),
        ("passed", {"ours": True}, "return"),  # our cordon, which the state lacks
        ("stuck", {"out": True, "ours": True}, None),
        ("done", {}, None),
        ("changing", {"due": False}, None),
        ("changing", {"reached": False}, None),
        ("changing", {"given_up": True}, None),
    ],
)
def test_what_was_begun_goes_on(phase: str, how: dict[str, Any], do: str | None) -> None:
    assert acts(host("h", phase, **how)).get("h") == do


@pytest.mark.parametrize("asked", ["pause", "abort"])
def test_a_request_finishes_what_was_changed_and_ends_drains(asked: str) -> None:
    hosts = [
        host("d", "draining"), host("i", "draining", idle=True), host("c", "changing"),
        host("b", "restoring"), host("w"), host("p", "prepared"),
    ]  # fmt: skip
    found = decided(*hosts, around=Around(NOW, asked))
    begun = {"d": Do.LEAVE, "i": Do.LEAVE, "c": Do.CHANGE, "b": Do.RESTORE}
    passed = {"w": Do.PASS, "p": Do.PASS} if asked == "abort" else {}
    assert found.acts == begun | passed
    assert found.end == ("aborted" if passed else "paused")


def test_a_host_that_is_at_work_is_not_passed() -> None:
    hosts = [host("w", due=False), host("p", "prepared")]
    assert acts(*hosts, around=Around(NOW, "abort")) == {"p": "pass"}


def test_the_canary_soaks_before_the_wave() -> None:
    soaked = host("c", "done", since=NOW - 300)
    assert acts(soaked, host("h", wave=1)) == {"h": "prepare"}
    fresh = host("c", "done", since=NOW - 100)
    found = decided(fresh, host("h", wave=1))
    assert (found.acts, found.waits, found.until) == ({}, "soak", NOW + 200)
    ahead = host("c", "done", since=NOW + 10**6)  # a clock that was set back
    assert decided(ahead, host("h", wave=1)).until == NOW + 300


def test_a_wave_is_prepared_then_drained_as_there_is_room() -> None:
    done = host("c", "done")
    wave = [host(name, "prepared", wave=1) for name in "hij"]
    assert acts(done, *wave, max_unavailable=2) == {"h": "drain", "i": "drain"}
    busy = host("k", "changing", wave=1)
    assert acts(done, *wave, busy, max_unavailable=2) == {"k": "change", "h": "drain"}
    waiting = host("w", wave=1)
    assert acts(done, waiting, *wave, max_unavailable=1) == {"w": "prepare", "h": "drain"}
    assert acts(done, *wave, host("n", wave=2), max_unavailable=3) == dict.fromkeys("hij", "drain")


def test_canaries_are_drained_in_the_order_of_the_plan() -> None:
    """The order does not depend on downloads. A canary that is tried later delays no other one."""
    second = host("b", "prepared", group="b")
    held = decided(host("a", busy=True, due=False), second)
    assert (held.acts, held.waits) == ({}, "")
    assert acts(host("a"), second) == {"a": "prepare"}
    assert acts(host("a", due=False), second) == {"b": "drain"}
    assert acts(host("a", "prepared"), second, max_unavailable=1) == {"a": "drain"}
    assert acts(second, host("a", busy=True, due=False)) == {"b": "drain"}


def test_a_host_that_is_about_to_be_drained_takes_room() -> None:
    """The state of such a host is not written yet."""
    begun, other = host("h", "prepared", due=False), host("i", "prepared", group="b")
    assert acts(begun, other, max_unavailable=1) == {}
    assert acts(begun, other, max_unavailable=2) == {"i": "drain"}


def test_a_host_that_is_out_already_needs_no_room() -> None:
    left = host("s", "prepared", out=True)
    assert acts(left, host("h", "prepared"), max_unavailable=1) == {"s": "drain"}


def test_a_failed_canary_ends_its_group_alone() -> None:
    hosts = [
        host("ca", "reverted"), host("cb", "done", group="b"), host("a", wave=1),
        host("b", wave=1, group="b"),
    ]  # fmt: skip
    found = decided(*hosts, max_failed=3, max_failed_in_a_row=3)
    assert found.acts == {"a": Do.PASS, "b": Do.PREPARE}
    assert found.why["a"] == "the canary of its group failed"


def test_another_host_takes_the_place_of_a_canary_that_was_passed() -> None:
    passed, others = host("c", "passed"), [host(name, wave=1) for name in "hi"]
    assert acts(passed, *others) == {"h": "prepare"}
    assert acts(passed, host("h", "draining", wave=1), others[1]) == {"h": "drain"}
    soaks = decided(passed, host("h", "done", wave=1, since=NOW), others[1])
    assert (soaks.acts, soaks.waits) == ({}, "soak")


def test_the_first_wave_of_a_roll_back_has_no_canaries() -> None:
    hosts = [host(name, kind="rollback") for name in "hi"]
    assert acts(*hosts) == {"h": "prepare"}  # one, until its group has proof
    failed = host("h", "stuck", kind="rollback", since=1.0)
    assert acts(host("d", "done", kind="rollback"), failed, hosts[1], max_unavailable=2)["i"]


@pytest.mark.parametrize(
    ("phases", "limits", "why"),
    [
        (("reverted", "done", "stuck"), {"max_failed": 2}, "upgrade_max_failed"),
        (("done", "reverted", "stuck"), {"max_failed": 9}, "upgrade_max_failed_in_a_row"),
        (("reverted", "restoring"), {"max_failed": 9}, "upgrade_max_failed_in_a_row"),
        (("reverted", "stuck", "done"), {"max_failed": 9}, None),
    ],
)
def test_the_budget_stops_the_run(
    phases: tuple[str, ...], limits: dict[str, Any], why: str | None
) -> None:
    proof = host("p", "done", since=0.0)
    hosts = [host(f"h{n}", each, wave=1, since=float(n + 1)) for n, each in enumerate(phases)]
    found = decided(proof, *hosts, host("w", wave=2), max_unavailable=9, **limits)
    assert (found.acts.get("w") is Do.PASS) is (why is not None)
    assert why is None or why in found.end


def test_no_host_is_begun_outside_of_the_window() -> None:
    sunday = datetime(2026, 11, 22, 12, 0, tzinfo=timezone.utc).timestamp()
    how = {"window": "Mon-Fri 09:00-16:30", "window_zone": "UTC"}
    found = decided(host("h"), around=Around(sunday), **how)
    assert (found.acts, found.waits) == ({}, "window Mon-Fri 09:00-16:30 UTC")
    assert found.until == sunday + 21 * 3600
    assert acts(host("h", "changing"), around=Around(sunday), **how) == {"h": "change"}
    assert acts(host("h"), around=Around(sunday + 21 * 3600), **how) == {"h": "prepare"}


@pytest.mark.parametrize(
    ("around", "waits"),
    [
        ({"alerts": ("A",)}, "end of alerts: A"),
        ({"reboots": ("n1",)}, "lock of kured, an annotation of its DaemonSet, held by n1"),
        ({"away": ("n1",)}, "nodes that are not Ready: n1"),
        ({"silent": "it is away"}, "cluster: it is away"),
    ],
)
def test_what_keeps_hosts_in_service(around: dict[str, Any], waits: str) -> None:
    found = decided(host("h", "prepared"), around=Around(NOW, **around))
    assert (found.acts, found.waits, found.until) == ({}, waits, NOW + RECHECK_SECONDS)


@pytest.mark.parametrize("around", [{"behind": ("n9",)}, {"unreached": ("h9",)}, {}])
def test_hosts_that_are_left_out_of_service_take_the_room(around: dict[str, Any]) -> None:
    stuck = [] if around else [host("s", "stuck", group="b")]
    found = decided(*stuck, host("h", "prepared", wave=1), around=Around(NOW, **around))
    assert found.acts == ({} if "unreached" in around else {"h": Do.PASS})
    assert ("no answer" in found.end) is ("unreached" in around)
    assert "upgrade_max_unavailable" in found.end


def test_a_host_that_cannot_be_finished_keeps_others_from_being_begun() -> None:
    left = host("r", "done", out=True, given_up=True)
    found = decided(left, host("d", "draining"), host("h", wave=1))
    assert (found.acts, found.end) == ({"d": Do.DRAIN}, "hosts could not be finished")
    aborted = decided(left, host("h", wave=1), around=Around(NOW, "abort"))
    assert aborted.acts == {"h": Do.PASS}


def test_a_run_without_anything_left_is_finished() -> None:
    assert decided(host("h", "done"), host("p", "passed")) == Decision()
    assert decided(host("h", "reverted")).end == "stopped: a canary failed: h"
