"""Several control planes: which host creates the cluster, how the others join, and refusals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from gpufleet.facts.model import NodeFacts
from gpufleet.facts.parse import parse_node_facts
from gpufleet.kubernetes.kubeadm import (
    JoinToken,
    certificates_configuration,
    init_configuration,
    join_configuration,
)
from gpufleet.kubernetes.notes import (
    JOINED,
    KUBELET,
    KUBERNETES_BEGUN_PATH,
    KUBERNETES_READY_PATH,
    LEAVING,
    NETWORKED,
)
from gpufleet.kubernetes.role import ROLE
from gpufleet.node.catalog import load_catalog
from gpufleet.node.plan import plan_steps
from gpufleet.node.removal import plan_removal
from gpufleet.node.settings import load_node_settings
from gpufleet.role.place import Place, PlaceQuestion
from tests.unit.hosts import record_of
from tests.unit.kubernetes.cluster_hosts import ROOM, codes, host, joined, node_of, plan_of
from tests.unit.kubernetes.kubeadm_files_setup import API, settings_of
from tests.unit.kubernetes.several_control_planes_setup import ENDPOINT, PLANES, place

ROOT = Path(__file__).resolve().parents[3]
KEY = "ab" * 32
TOKEN = JoinToken(ENDPOINT, "abcdef.0123456789abcdef", "sha256:" + "0" * 64, "1.36.3", KEY)


def found_of(facts: NodeFacts, where: Place, endpoint: str | None = ENDPOINT) -> list[str]:
    return codes(node_of(facts, where, endpoint=endpoint))


def node_at(server: str, advertised: str = "10.0.0.1:6443", **changes: Any) -> NodeFacts:
    """A joined host of a cluster with this API server; `advertised`: the host's own address."""
    room = joined().cluster_host
    return joined(**changes, cluster_host=replace(room, server=server, advertised=advertised))


@pytest.mark.parametrize(
    ("position", "having", "initiates", "sources"),
    [
        (0, (), True, ("cp-2", "cp-3")),
        (0, ("cp-3",), False, ("cp-3", "cp-2")),  # a new machine replaces the first one
        (1, (), False, ("cp-1", "cp-3")),
        (None, (), False, PLANES),
    ],
)
def test_the_first_begins_the_cluster_unless_another_runs(
    position: int | None, having: tuple[str, ...], initiates: bool, sources: tuple[str, ...]
) -> None:
    plan = plan_of(host(), place(position, having=having), endpoint=ENDPOINT)
    assert (plan.initiates, plan.sources) == (initiates, sources)
    assert plan.networks is initiates


def test_hosts_that_are_not_in_the_run_are_not_asked() -> None:
    plan = plan_of(host(), place(None, absent=frozenset({"cp-1"})), endpoint=ENDPOINT)
    assert plan.sources == ("cp-2", "cp-3")
    alone = place(2, absent=frozenset({"cp-1", "cp-2"}))
    assert found_of(host(), alone) == ["GF944"]
    assert found_of(joined(), alone) == []


@pytest.mark.parametrize(
    ("where", "words"),
    [
        (place(0), "start the control plane"),
        (place(0, having=("cp-2",)), "join the cluster of cp-2 as control plane"),
        (place(1), "join the cluster of cp-1 as control plane"),
        (place(None), "join the cluster of cp-1"),
    ],
)
def test_steps_say_what_the_host_becomes(where: Place, words: str) -> None:
    assert f"kubernetes: {words}" in plan_steps(node_of(host(), where, endpoint=ENDPOINT))


def test_a_joined_control_plane_is_converged() -> None:
    """Only the first control plane installs the network. A join writes READY and NETWORKED."""
    plan = plan_of(joined(), place(1), endpoint=ENDPOINT)
    assert (plan.networks, plan.waits, plan.initiates) == (False, False, False)
    facts = joined()
    paths = facts.cluster_host.paths - {NETWORKED}
    first = replace(facts, cluster_host=replace(facts.cluster_host, paths=paths))
    assert plan_of(first, place(0), endpoint=ENDPOINT).networks
    assert not plan_of(first, place(1), endpoint=ENDPOINT).networks


OWN = "https://10.0.0.1:6443"
GATES: list[tuple[NodeFacts, Place, str | None, list[str]]] = [
    (host(), place(0), ENDPOINT, []),
    (host(), place(0), None, ["GF958"]),
    (host(), place(0, ("cp-1",)), None, []),
    (host(), place(0, ("cp-1",)), ENDPOINT, []),
    (host(), place(0, ("cp-1", "cp-2")), ENDPOINT, ["GF080"]),
    (host(), place(1, ("cp-1", "cp-2")), ENDPOINT, []),  # said once
    (host(), place(0, answering="v1.36.3"), ENDPOINT, ["GF081"]),
    (host(), place(0, answering="v1.36.3", having=("cp-2",)), ENDPOINT, []),
    (node_at(f"https://{ENDPOINT}"), place(0), ENDPOINT, []),
    (node_at("https://old.lab:6443"), place(0), ENDPOINT, ["GF082"]),
    (node_at("https://old.lab:6443"), place(0, ("cp-1",)), ENDPOINT, ["GF082"]),
    (node_at("https://old.lab:6443"), place(0), None, ["GF958"]),
    (node_at("https://old.lab:6443"), place(0, ("cp-1",)), None, []),
    (node_at(OWN), place(0), ENDPOINT, ["GF083"]),
    (node_at(OWN), place(0), None, ["GF083"]),
    (node_at(OWN), place(1, ("cp-1", "cp-2")), ENDPOINT, ["GF083"]),
    (node_at(OWN), place(0, ("cp-1",)), None, []),
    (node_at(OWN), place(0, ("cp-1",)), ENDPOINT, ["GF082"]),
    (node_at(OWN), place(0, endpoint="10.0.0.1:6443"), "10.0.0.1:6443", []),
    (node_at(OWN, ""), place(None, ("cp-1",)), ENDPOINT, ["GF082"]),  # a worker
    (host(), place(1, endpoint="b.lab:6443"), ENDPOINT, ["GF960"]),
    (host(), place(None, endpoint="b.lab:6443"), ENDPOINT, ["GF960"]),
]


@pytest.mark.claim(
    "Several control planes need an endpoint that leads to their own cluster.",
    level=1,
)
@pytest.mark.parametrize(("facts", "where", "endpoint", "expected"), GATES)
def test_gates(facts: NodeFacts, where: Place, endpoint: str | None, expected: list[str]) -> None:
    if endpoint is None:
        where = replace(where, plane={"kubernetes_enabled": True})
    assert found_of(facts, where, endpoint) == expected


@pytest.mark.parametrize(
    ("count", "loss"),
    [(2, "the loss of none, the same as with 1"), (4, "the loss of 1, the same as with 3")],
)
def test_an_even_number_of_control_planes_stands_no_more_losses(count: int, loss: str) -> None:
    planes = tuple(f"cp-{number}" for number in range(count))
    node = node_of(host(), place(0, planes), endpoint=ENDPOINT)
    [found] = [each for part in node.parts for each in part.findings if each.code == "GF080"]
    assert f"etcd tolerates {loss}" in found.message


@pytest.mark.parametrize(
    ("endpoint", "expected"),
    [("10.89.3.1:39841", []), ("10.89.3.5:6443", ["GF082"]), (None, ["GF958"])],
)
def test_a_host_of_a_real_cluster(endpoint: str | None, expected: list[str]) -> None:
    """The capture is of the third control plane of tests/hosts/test_control_planes.py."""
    name = "tests/unit/facts/captures/ubuntu2404-control-plane-sandbox.txt"
    facts = parse_node_facts((ROOT / name).read_text().splitlines())
    where = place(2, endpoint=endpoint or "")
    if endpoint is None:
        where = replace(where, plane={"kubernetes_enabled": True})
    found = found_of(facts, where, endpoint)
    others = {"GF932", "GF325"}  # about the captured machine and its mirror
    assert [code for code in found if code not in others] == expected
    plan = plan_of(facts, where, endpoint=endpoint)
    assert (plan.joined, plan.networks, plan.waits, plan.reset) == (True, False, False, False)


def asked(
    paths: Sequence[str], where: Place, endpoint: str | None = ENDPOINT
) -> PlaceQuestion | None:
    facts = host(cluster_host=replace(ROOM, paths=frozenset(paths)))
    return ROLE.question(settings_of(endpoint=endpoint), facts, where)


def test_others_are_asked_only_where_a_cluster_would_begin() -> None:
    assert asked([], place(0)) == PlaceQuestion(JOINED, ENDPOINT)
    assert asked([], place(0, ("cp-1",)), None) == PlaceQuestion("", "")
    assert asked([KUBERNETES_BEGUN_PATH], place(0)) == PlaceQuestion(
        JOINED, ""
    )  # the answering API may be its own
    assert asked([JOINED, KUBERNETES_READY_PATH, KUBELET], place(0)) is None
    assert asked([JOINED, KUBERNETES_READY_PATH], place(0)) == PlaceQuestion(
        JOINED, ENDPOINT
    )  # reset by hand
    assert asked([], place(1)) is None
    assert asked([], place(None)) is None


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        (place(0, ("cp-1",)), ["GF292"]),
        (place(0), ["GF292"]),  # no other control plane is a node
        (place(0, having=("cp-2",)), []),
        (place(1), []),
    ],
)
def test_one_that_was_reset_by_hand_joins_the_others(where: Place, expected: list[str]) -> None:
    paths = joined().cluster_host.paths - {KUBELET}
    facts = joined(cluster_host=replace(ROOM, paths=paths))
    assert found_of(facts, where) == expected
    plan = plan_of(facts, where, endpoint=ENDPOINT)
    assert (plan.joined, plan.reset) == (False, True)


def test_access_for_leaving_that_was_left_is_removed_before_a_join() -> None:
    left = host(cluster_host=replace(ROOM, paths=frozenset({LEAVING})))
    assert plan_of(left, place(1), endpoint=ENDPOINT).reset
    paths = joined().cluster_host.paths | {LEAVING}
    stays = joined(cluster_host=replace(ROOM, paths=paths))
    plan = plan_of(stays, place(1), endpoint=ENDPOINT)
    assert (plan.reset, plan.waits) == (False, False)


def test_a_new_first_control_plane_does_not_make_the_others_strangers() -> None:
    settings = settings_of(endpoint=ENDPOINT)
    node = joined(cluster_host=replace(joined().cluster_host, authorities=frozenset({"a"})))
    plan = plan_of(node, place(1), endpoint=ENDPOINT)
    assert not list(ROLE.beside(plan, settings, node, host()))
    assert list(ROLE.beside(plan, settings_of(), node, host()))


@pytest.mark.parametrize(
    ("given", "endpoint"),
    [
        ("K8s.Lab.example.com", "k8s.lab.example.com:6443"),
        ("k8s.lab:443", "k8s.lab:443"),
        ("10.0.0.10", "10.0.0.10:6443"),
        ("fd00::1", "[fd00::1]:6443"),
        ("[fd00::1]:7443", "[fd00::1]:7443"),
    ],
)
def test_the_endpoint_has_a_port(given: str, endpoint: str) -> None:
    assert settings_of(endpoint=given).endpoint == endpoint


@pytest.mark.parametrize(
    "given",
    ["https://k8s.lab", "k8s.lab:", "k8s.lab:0", "k8s.lab:70000", "10.0.0", "a b", "[::", ""],
)
def test_what_is_no_endpoint(given: str) -> None:
    settings, problems = load_node_settings({"kubernetes_endpoint": given})
    assert settings is None
    assert "must be a host or host:port" in problems[0].message


def documents(text: str) -> dict[str, Any]:
    return {each["kind"]: each for each in yaml.safe_load_all(text)}


def test_kubeadm_knows_the_endpoint() -> None:
    cluster = documents(init_configuration(settings_of(endpoint=ENDPOINT), "1.36.3", API))
    assert cluster["ClusterConfiguration"]["controlPlaneEndpoint"] == ENDPOINT
    alone = documents(init_configuration(settings_of(), "1.36.3", API))["ClusterConfiguration"]
    assert "controlPlaneEndpoint" not in alone


def test_the_key_makes_a_control_plane() -> None:
    text = join_configuration(settings_of(), TOKEN, API)
    (found,) = documents(text).values()
    assert found["controlPlane"] == {"certificateKey": KEY}
    assert "taints" not in found["nodeRegistration"]  # kubeadm's own
    text = join_configuration(settings_of(control_plane_pods=True), TOKEN, API)
    assert documents(text)["JoinConfiguration"]["nodeRegistration"]["taints"] == []
    (worker,) = documents(join_configuration(settings_of(), replace(TOKEN, key=""), API)).values()
    assert "controlPlane" not in worker
    assert KEY not in repr(TOKEN)


def test_the_certificates_need_no_version_of_the_internet() -> None:
    found = documents(certificates_configuration(KEY, "1.36.3", API))
    assert found["InitConfiguration"]["certificateKey"] == KEY
    assert found["ClusterConfiguration"]["kubernetesVersion"] == "v1.36.3"


@pytest.mark.parametrize(
    ("where", "part", "turn", "whole"),
    [
        (place(None), "worker", "worker", True),
        (place(0), "control-plane", "last", True),
        (place(1), "control-plane", "control-plane", True),
        (place(2, absent=frozenset({"cp-1", "cp-2"})), "control-plane", "control-plane", False),
        (place(0, absent=frozenset({"cp-2"})), "control-plane", "control-plane", False),
        (place(1), "", "control-plane", True),  # a join that did not end
        (Place(), "control-plane", "last", True),
        # a user removed it from the group before
        (replace(place(None), absent=frozenset(PLANES)), "control-plane", "control-plane", False),
    ],
)
def test_the_first_control_plane_leaves_last(
    where: Place, part: str, turn: str, whole: bool
) -> None:
    record = record_of(kubernetes={"part": part, "version": "1.36.3"})
    data = {"kubernetes_enabled": True, "kubernetes_kubeconfig": "~/lab.kubeconfig"}
    settings, _ = load_node_settings(data)
    assert settings is not None
    facts = joined(provenance=record)
    plan = plan_removal(settings, facts, load_catalog(), only=ROLE, place=where).of(ROLE)
    assert (plan.reset, plan.turn, plan.whole) == (True, turn, whole)
    assert bool(plan.kubeconfig) is (turn == "last")


def test_a_removal_that_ended_before_the_node_was_deleted_goes_on() -> None:
    record = record_of(kubernetes={"part": "control-plane", "version": "1.36.3"})
    settings, _ = load_node_settings({"kubernetes_enabled": True})
    assert settings is not None
    facts = host(provenance=record, cluster_host=replace(ROOM, paths=frozenset({LEAVING})))
    plan = plan_removal(settings, facts, load_catalog(), only=ROLE, place=place(1)).of(ROLE)
    assert plan.reset
