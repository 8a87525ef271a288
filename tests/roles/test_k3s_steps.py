"""Steps of a node by k3s on fake hosts: their order, and where the token is."""

from __future__ import annotations

import base64
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from pyinfra import host
from pyinfra.api import Config, Inventory, State
from pyinfra.api.connect import connect_all
from pyinfra.api.deploy import add_deploy
from pyinfra.api.operations import run_ops

from gpufleet.facts.model import NodeFacts
from gpufleet.kubernetes.access import authorities
from gpufleet.kubernetes.images import FOLDER as UPLOADS
from gpufleet.kubernetes.k3s.plan import STATE, K3sPlan
from gpufleet.kubernetes.notes import RESTARTING
from gpufleet.kubernetes.operations import k3s
from gpufleet.kubernetes.record import KubernetesEntry
from gpufleet.kubernetes.removal import KubernetesRemoval
from gpufleet.node.operations import provenance
from gpufleet.role.result import RoleResult
from gpufleet.roles.kubernetes.install import install
from gpufleet.run.reporting import RunReport
from tests.roles.answers import framed_lines
from tests.roles.calls import Calls
from tests.unit.hosts import record_of
from tests.unit.kubernetes.cluster_hosts import PLANE, WORKER
from tests.unit.kubernetes.k3s_hosts import DIGESTS, IMAGES, VERSION, a_node, bare, plan_of
from tests.unit.kubernetes.test_kubeadm_files import ADMIN

TOKEN = "K10ca::abcdef.0123456789abcdef"
ANSWER = f"endpoint 10.0.0.1:6443\nversion {VERSION}\ntoken {TOKEN}\nhash sha256:00"
SCRIPT = re.compile(r"gpufleet-(k3s_\w+|put_files|receive|append)\b|(touch)\b")


class Run(Calls):
    """The steps of plans, each on its host."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, plans: dict[str, Any], deploy: Any) -> None:
        super().__init__(monkeypatch, SCRIPT)
        answers = {
            "gpufleet-k3s_token": framed_lines(ANSWER),
            "gpufleet-k3s_access": framed_lines(yaml.safe_dump(ADMIN)),
        }
        quick = {"fake_delay": 0.0, "fake_delay_jitter": 0.0}
        hosts = [(f"@fake/{name}", {**quick, "fake_responses": answers}) for name in plans]
        state = State(Inventory((hosts, {})), Config())
        RunReport(state)
        connect_all(state)
        add_deploy(state, lambda: deploy(plans[host.name.removeprefix("@fake/")]))
        run_ops(state)

    def of(self, name: str) -> list[str]:
        """The steps of one host; the token is made on another."""
        return [call.split()[0] for call in self.calls if call.endswith(f" {name}")]


@pytest.fixture(autouse=True)
def recorded(monkeypatch: pytest.MonkeyPatch) -> list[RoleResult]:
    """What the role would record; writing it has tests of its own."""
    found: list[RoleResult] = []
    monkeypatch.setattr(provenance, "record", lambda title, node, result: found.append(result()))
    monkeypatch.setattr(provenance, "is_current", lambda node, result: True)
    return found


def apply(plan: K3sPlan, kubeconfig: str | None = None, facts: NodeFacts | None = None) -> None:
    """The role's installation."""
    settings = SimpleNamespace(kubeconfig=kubeconfig)
    node = SimpleNamespace(
        plan=SimpleNamespace(of=lambda _: plan), facts=facts or bare(),
        settings=SimpleNamespace(of=lambda _: settings),
    )  # fmt: skip
    install(node)  # type: ignore[arg-type]


def agent(**more: Any) -> K3sPlan:
    return replace(plan_of(bare(), WORKER, **more), sources=("@fake/cp-01",))


def test_a_server_starts_and_an_agent_joins_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, recorded: list[RoleResult]
) -> None:
    path = tmp_path / "kubeconfig"
    plans = {"cp-01": plan_of(bare(), PLANE), "gpu-01": agent()}
    run = Run(monkeypatch, plans, lambda plan: apply(plan, str(path)))
    (result, _) = recorded
    assert isinstance(result.entry, KubernetesEntry)
    assert (result.entry.distribution, result.entry.version) == ("k3s", VERSION)
    assert result.entry.k3s == {name: DIGESTS[name] for name in ("k3s", IMAGES)}
    first = ["touch", "k3s_put", "k3s_put", "receive", "put_files"]
    assert run.of("cp-01") == [*first, "k3s_start", "k3s_token", "k3s_ready", "k3s_access"]
    assert run.of("gpu-01") == [*first, "receive", "receive", "k3s_start", "k3s_ready"]
    assert "server: https://a:6443" in path.read_text()
    assert path.stat().st_mode & 0o777 == 0o600


def test_the_token_is_an_argument_of_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run(monkeypatch, {"cp-01": plan_of(a_node()), "gpu-01": agent()}, apply)
    assert not [words for words in run.words if "abcdef.0123" in words]
    sent = [base64.b64decode(each) for each in run.inputs]
    assert f"{TOKEN}\n".encode() in sent
    assert b"server: https://10.0.0.1:6443\n" in sent


def test_a_begun_host_says_what_began(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before the note that it is begun: a later run resets it with k3s' own reset."""
    run = Run(monkeypatch, {"cp-01": plan_of(bare(), PLANE)}, apply)
    (begun,) = [at for at, words in enumerate(run.words) if "touch" in words.split()]
    assert f"mkdir -p {STATE}" in run.words[:begun]


def test_what_an_earlier_run_left_is_reset_first(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = replace(plan_of(bare(), PLANE), reset=True)
    run = Run(monkeypatch, {"cp-01": plan}, apply)
    assert run.of("cp-01")[:2] == ["k3s_reset", "touch"]
    (reset,) = [words for words in run.words if "gpufleet-k3s_reset" in words]
    assert " leaves " not in reset.rpartition("gpufleet-k3s_reset")[2]


def test_a_node_is_restarted_where_its_files_change(monkeypatch: pytest.MonkeyPatch) -> None:
    mirrors = {"docker.io": "https://mirror.example.com/v2/docker.io"}
    plan = plan_of(a_node(), registry_mirrors=mirrors)
    run = Run(monkeypatch, {"cp-01": plan}, apply)
    assert run.of("cp-01") == ["touch", "receive", "put_files", "k3s_restart"]


def test_a_restart_that_was_not_reached_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    """The run before was killed after it wrote the files, or k3s did not start with them."""
    facts = a_node()
    paths = facts.cluster_host.paths | {RESTARTING}
    plan = plan_of(replace(facts, cluster_host=replace(facts.cluster_host, paths=paths)))
    assert (plan.files, plan.converged) == ((), False)
    assert plan.steps()["restart k3s.service"]
    run = Run(monkeypatch, {"cp-01": plan}, apply)
    assert run.of("cp-01") == ["touch", "k3s_restart"]


def test_a_node_without_a_record_is_asked_for_its_version(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = plan_of(replace(a_node(), provenance=record_of()))
    assert plan.joined
    run = Run(monkeypatch, {"cp-01": plan}, apply)
    assert run.of("cp-01") == ["k3s_same", "touch", "k3s_put", "k3s_put", "k3s_restart"]


def test_a_converged_node_costs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Run(monkeypatch, {"cp-01": plan_of(a_node())}, apply).calls == []


def access(tmp_path: Path) -> tuple[Path, frozenset[str]]:
    """A kubeconfig on this machine, and the authority that it trusts."""
    path = tmp_path / "kubeconfig"
    pem = base64.b64encode(b"-----BEGIN CERTIFICATE-----\nQUJD\n-----END CERTIFICATE-----\n")
    trusts = {"server": "https://a:6443", "certificate-authority-data": pem.decode()}
    path.write_text(yaml.safe_dump({**ADMIN, "clusters": [{"name": "c", "cluster": trusts}]}))
    return path, authorities(path.read_text())


@pytest.mark.parametrize(("known", "stays"), [(None, False), ({"another"}, True), (set(), True)])
def test_agents_leave_before_their_server(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, known: set[str] | None, stays: bool
) -> None:
    """The kubeconfig goes with the cluster whose authority it trusts. `known`: the host's."""
    path, own = access(tmp_path)
    server = KubernetesRemoval(
        distribution="k3s", reset=True, turn="last", kubeconfig=str(path),
        authorities=tuple(own if known is None else known),
    )  # fmt: skip
    plans = {"cp-01": server, "gpu-01": KubernetesRemoval(distribution="k3s", reset=True)}

    def leave(plan: KubernetesRemoval) -> None:
        k3s.leave("Agents", plan, "worker")
        k3s.forget_access("Access", plan)
        k3s.leave("Server", plan, "control-plane", "last")

    run = Run(monkeypatch, plans, leave)
    assert run.calls == ["k3s_reset gpu-01", "k3s_reset cp-01"]
    resets = [words for words in run.words if "gpufleet-k3s_reset" in words]
    words = [each.rpartition("gpufleet-k3s_reset")[2] for each in resets]
    assert all(" leaves " in each and UPLOADS in each for each in words)
    assert path.exists() is stays


def test_a_kubeconfig_that_is_gone_is_no_failure(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    server = KubernetesRemoval(
        distribution="k3s", reset=True, turn="last", kubeconfig=str(tmp_path / "kubeconfig"),
        authorities=("any",),
    )  # fmt: skip

    def leave(plan: KubernetesRemoval) -> None:
        k3s.forget_access("Access", plan)
        k3s.leave("Server", plan, "control-plane", "last")

    assert Run(monkeypatch, {"cp-01": server}, leave).calls == ["k3s_reset cp-01"]


def test_files_of_this_machine_are_sent(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "k3s").write_bytes(b"program")
    plan = plan_of(bare(), k3s_files=[str(tmp_path / "k3s")], k3s_sha256={}, k3s_url=None)
    run = Run(monkeypatch, {"cp-01": plan}, lambda plan: k3s.install("Install", plan.missing))
    assert run.of("cp-01") == ["append", "k3s_put"]
    assert base64.b64encode(b"program").decode() in run.inputs
