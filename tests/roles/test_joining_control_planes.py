"""Control planes join one after the other, with a key that is nowhere else, and leave in turn."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from pyinfra import host
from pyinfra.api import Config, Host, Inventory, State
from pyinfra.api.connect import connect_all
from pyinfra.api.deploy import add_deploy
from pyinfra.api.exceptions import PyinfraError
from pyinfra.api.operations import run_ops

from gpufleet.kubernetes.operations import control_planes, joining
from gpufleet.kubernetes.plan import (
    KubernetesPlan,
)
from gpufleet.kubernetes.removal import KubernetesRemoval
from gpufleet.node.operations.place import answer_question, host_place
from gpufleet.role.place import PlaceQuestion
from gpufleet.run.reporting import RunReport
from tests.roles.answers import framed_lines
from tests.roles.calls import Calls
from tests.unit.hosts import bare_host
from tests.unit.kubernetes.cluster_hosts import host as facts_of_host
from tests.unit.kubernetes.cluster_hosts import joined, plan_of
from tests.unit.kubernetes.kubeadm_files_setup import settings_of
from tests.unit.kubernetes.several_control_planes_setup import ENDPOINT, PLANES, place

SETTINGS = settings_of(endpoint=ENDPOINT)
ANSWER = f"endpoint {ENDPOINT}\nversion 1.36.3\ntoken abcdef.0123456789abcdef\nhash sha256:00"
SCRIPT = re.compile(r"gpufleet-(token|kubeadm|withdraw|reset|leave|delete_node|unanswered)\b")


class Bench(Calls):
    """Fake control planes."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **answers: dict[str, Any]) -> None:
        super().__init__(monkeypatch, SCRIPT)
        quick = {"fake_delay": 0.01, "fake_delay_jitter": 0.0}  # others get their turn
        usual = {"gpufleet-token": framed_lines(ANSWER)}
        names = [f"@fake/{name}" for name in PLANES]
        hosts = [
            (name, {**quick, "fake_responses": {**usual, **answers.get(each.replace("-", ""), {})}})
            for name, each in zip(names, PLANES, strict=True)
        ]
        group = {"control_plane": (names, {})}
        self.state = State(Inventory((hosts, {}), **group), Config())
        self.report = RunReport(self.state)
        self.state.add_callback_handler(self.report)
        connect_all(self.state)

    def host(self, name: str) -> Host:
        return self.state.inventory.get_host(f"@fake/{name}")

    def run(self, function: Callable[[], None]) -> list[str]:
        """The commands that ran, as "script host"."""
        add_deploy(self.state, function)
        run_ops(self.state)
        return self.calls


def plans(*nodes: str) -> dict[str, KubernetesPlan]:
    """By host, with the names of the fake connector; `nodes` have joined."""
    found = {}
    for number, name in enumerate(PLANES):
        facts = joined() if name in nodes else facts_of_host()
        having = tuple(each for each in nodes if each != name) if number == 0 else ()
        plan = plan_of(facts, place(number, having=having), endpoint=ENDPOINT)
        sources = tuple(f"@fake/{each}" for each in plan.sources)
        found[f"@fake/{name}"] = replace(plan, sources=sources)
    return found


def joins(known: dict[str, KubernetesPlan]) -> Callable[[], None]:
    """The steps of the role that start and join control planes."""

    def deploy() -> None:
        plan = known[host.name]
        joining.start_control_plane("Start", plan, SETTINGS, lambda: "1.36.3")
        control_planes.join_control_plane(
            "Join as a control plane", plan, SETTINGS, lambda: "1.36.3"
        )

    return deploy


def rounds(calls: list[str], size: int) -> list[list[str]]:
    """Steps of one host each, in the order of the hosts: pyinfra takes them in any."""
    groups = [calls[start : start + size] for start in range(0, len(calls), size)]
    return sorted(groups)


def join_of(name: str, source: str = "cp-1") -> list[str]:
    return [f"token {source}", f"kubeadm {name}", f"withdraw {source}"]


@pytest.mark.claim(
    "Control planes join one after the other; keys and tokens are in no command line.",
    level=2,
)
def test_the_first_begins_and_the_others_join_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = Bench(monkeypatch).run(joins(plans()))
    assert calls[:2] == ["unanswered cp-1", "kubeadm cp-1"]
    assert rounds(calls[2:], 3) == [join_of("cp-2"), join_of("cp-3")]


def test_keys_and_tokens_go_through_standard_input_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each join gets a new key, which is sent to the host that encrypts and the host that
    decrypts."""
    bench = Bench(monkeypatch)
    bench.run(joins(plans("cp-1")))
    stored = [line for line in bench.inputs if line.startswith("certificateKey: ")]
    keys = [line.split()[1] for line in stored]
    assert len(set(keys)) == 2
    assert all(re.fullmatch("[0-9a-f]{64}", key) for key in keys)
    sent = [
        base64.b64decode(line).decode() for line in bench.inputs if re.fullmatch(r"[\w+/]+=*", line)
    ]
    files = [yaml.safe_load(text) for text in sent if "JoinConfiguration" in text]
    assert [each["controlPlane"]["certificateKey"] for each in files] == keys
    words = "\n".join(bench.words)
    assert not [secret for secret in (*keys, "abcdef.0123456789abcdef") if secret in words]


def test_certificates_go_after_a_join_that_failed_too(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(monkeypatch, cp2={"gpufleet-kubeadm": {"success": False}})
    calls = bench.run(joins(plans("cp-1")))
    assert rounds(calls, 3) == [join_of("cp-2"), join_of("cp-3")]
    assert bench.host("cp-2") in bench.state.failed_hosts


def test_certificates_that_stay_are_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(monkeypatch, cp1={"gpufleet-withdraw": {"success": False}})
    bench.run(joins(plans("cp-1")))
    (part,) = [each for each in bench.report.gather() if each.name == "@fake/cp-3"]
    assert [finding.code for finding in part.findings] == ["GF085"]


@pytest.mark.parametrize("gone", [True, False])
def test_any_joined_control_plane_makes_the_token(
    monkeypatch: pytest.MonkeyPatch, gone: bool
) -> None:
    """The first is lost, or a new machine that cannot make one yet."""
    broken = {"gpufleet-token": {"success": False, "stderr": "no admin.conf"}}
    bench = Bench(monkeypatch, cp1=broken)
    if gone:
        bench.state.fail_hosts({bench.host("cp-1")})
    calls = bench.run(joins(plans("cp-1", "cp-2")))
    asked = [] if gone else ["token cp-1"]
    assert calls == [*asked, *join_of("cp-3", "cp-2")]


def test_a_new_first_control_plane_joins_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(monkeypatch)
    assert bench.run(joins(plans("cp-2", "cp-3"))) == join_of("cp-1", "cp-2")


def test_without_any_nothing_joins(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = {"gpufleet-kubeadm": {"success": False}}
    none = {"gpufleet-token": {"success": False, "stderr": "no admin.conf"}}
    bench = Bench(monkeypatch, cp1=broken, cp2=none, cp3=none)
    with pytest.raises(PyinfraError, match="No hosts remaining"):
        bench.run(joins(plans()))
    assert "kubeadm cp-2" not in bench.calls
    part = next(each for each in bench.report.gather() if each.name == "@fake/cp-2")
    assert "GF944" in [finding.code for finding in part.findings]


def removed(*, whole: bool) -> list[KubernetesRemoval]:
    turns = ("last", "control-plane", "control-plane") if whole else ("control-plane",) * 3
    return [
        KubernetesRemoval(reset=True, turn=turn, whole=whole, network="flannel")  # type: ignore[arg-type]
        for turn in turns
    ]


@pytest.mark.parametrize("whole", [True, False])
def test_control_planes_leave_one_by_one(monkeypatch: pytest.MonkeyPatch, whole: bool) -> None:
    bench = Bench(monkeypatch)
    known = dict(zip((f"@fake/{name}" for name in PLANES), removed(whole=whole), strict=True))

    def deploy() -> None:
        control_planes.leave_control_plane("Leave", known[host.name], "control-plane")
        control_planes.leave_control_plane("End", known[host.name], "last")

    calls = bench.run(deploy)
    if whole:
        assert calls[-1] == "reset cp-1"
        assert sorted(calls[:-1]) == ["reset cp-2", "reset cp-3"]
    else:
        steps = ("leave", "reset", "delete_node")
        assert rounds(calls, 3) == [[f"{step} {name}" for step in steps] for name in PLANES]


def test_the_others_are_asked_whether_they_are_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    yes = {"gpufleet-has_file": framed_lines("yes")}
    no = {"gpufleet-has_file": framed_lines("no")}
    bench = Bench(monkeypatch, cp1=no, cp2=no, cp3=yes)
    first = bench.host("cp-1")
    where = host_place(bench.state, first, bare_host())
    assert (where.position, where.absent, len(where.control_planes)) == (0, frozenset(), 3)
    found = answer_question(bench.state, first, where, PlaceQuestion("/var/lib/gpufleet/x"))
    assert found.having == ("@fake/cp-3",)
    assert answer_question(bench.state, first, where, PlaceQuestion()).having == ()
    assert host_place(bench.state, bench.host("cp-3"), bare_host()).position == 2


@pytest.mark.parametrize(("leads", "changed"), [(True, True), (False, False)])
def test_the_kubeconfig_is_the_first_control_planes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, leads: bool, changed: bool
) -> None:
    """Each control plane has its user. Another one's access is written only if the file does not
    exist."""

    def access(user: str) -> str:
        data = base64.b64encode(user.encode()).decode()
        return yaml.safe_dump({
            "clusters": [{"cluster": {
                "server": f"https://{ENDPOINT}", "certificate-authority-data": "Q0E="}}],
            "users": [{"user": {"client-certificate-data": data, "client-key-data": data}}],
        })  # fmt: skip

    bench = Bench(monkeypatch, cp1={"admin.conf": framed_lines(access("new"))})
    file = tmp_path / "kubeconfig"
    file.write_text(access("old"))
    plan = replace(plan_of(joined(), place(0), endpoint=ENDPOINT), leads=leads)

    def deploy() -> None:
        if host.name == "@fake/cp-1":
            joining.fetch_access("Write the kubeconfig", plan, str(file))

    bench.run(deploy)
    new = base64.b64encode(b"new").decode()
    assert (new in file.read_text()) is changed
