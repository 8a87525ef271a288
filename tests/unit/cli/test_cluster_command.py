"""`gpufleet cluster`: its phases, its output, and the arguments that it refuses."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from gpufleet.cli import cluster
from gpufleet.core.names import count_noun
from gpufleet.kubernetes.operations import cluster_view
from gpufleet.run.cluster_phases import ClusterPhase
from gpufleet.verify.inventory import Target
from tests.unit.kubernetes.members_setup import PODS, node

pytestmark = pytest.mark.claim(
    "`cluster destroy` refuses if the kubeconfig leads to another cluster than the hosts'.",
    level=1,
)

Invoke = Callable[..., Result]


@pytest.fixture
def access(tmp_path: Path) -> Path:
    path = tmp_path / "kubeconfig"
    path.write_text("there")
    return path


@pytest.fixture
def plane(access: Path) -> Target:
    return Target("cp-1", ("control_plane",), {"kubernetes_kubeconfig": str(access)})


@pytest.fixture
def stack(access: Path) -> Target:
    return Target("@local", ("gpu_cluster",), {"cluster_kubeconfig": str(access)})


@pytest.fixture
def started() -> list[ClusterPhase]:
    return []


@pytest.fixture
def invoke(monkeypatch: pytest.MonkeyPatch, started: list[ClusterPhase]) -> Invoke:
    """Runs the command on targets; phases are noted in `started` and pass."""

    def run(
        targets: list[Target], *words: str, pods: Any = (), nodes: Any = (),
        joined: tuple[str, ...] = ("cp-1",), answer: str = "", trusted: str = "aa",
    ) -> Result:  # fmt: skip
        def carry_out(phases: list[ClusterPhase], *_: Any) -> int:
            started.extend(phases)
            return 0

        def asked(kubeconfig: str) -> tuple[str, Any, Any]:
            if pods is None:
                raise cluster_view.Unknown("GF000 no route")
            return "v1.36.3", nodes, pods

        monkeypatch.setattr(cluster, "targets_of", lambda inventory, limit: targets)
        monkeypatch.setattr(cluster, "carry_out", carry_out)
        monkeypatch.setattr(cluster_view, "_asked", asked)
        known = frozenset((trusted,)) if trusted else frozenset[str]()
        monkeypatch.setattr(cluster_view, "authority_digests", lambda _: known)
        monkeypatch.setattr(
            cluster, "nodes_of", lambda *_: dict.fromkeys(joined, frozenset(("aa",)))
        )
        if answer:
            monkeypatch.setattr(cluster, "require_confirmation", lambda *_: None)
        words = (words[0], "inv.py", *words[1:])
        return CliRunner().invoke(cluster.cluster, words, input=answer)

    return run


def test_hosts_then_stack_then_checks(
    invoke: Invoke, plane: Target, stack: Target, started: list[ClusterPhase]
) -> None:
    assert invoke([plane, stack], "create", "--yes").exit_code == 0
    assert [each.name for each in started] == ["Preflight", "Hosts", "Nodes", "GPU stack", "Checks"]
    deploys = [Path(str(started[number].words[-1])).name for number in (0, 1, 3)]
    assert deploys == ["preflight.py", "gpu_node.py", "gpu_cluster.py"]
    for each in started[:2]:
        assert each.words[each.words.index("--limit") + 1] == "cp-1"  # the API does not answer yet
    assert list(started[2].words[-5:]) == ["cluster", "status", "inv.py", "--wait", "120"]
    assert list(started[4].words[-2:]) == ["verify", "inv.py"]
    assert started[4].checks


def test_without_a_cluster_in_the_inventory_there_is_no_stack(
    invoke: Invoke, plane: Target, started: list[ClusterPhase]
) -> None:
    assert invoke([plane], "create", "--yes").exit_code == 0
    assert [each.name for each in started] == ["Preflight", "Hosts", "Nodes", "Checks"]
    assert all("--limit" not in each.words for each in started)


def test_nodes_are_not_awaited_where_the_network_is_the_users(
    invoke: Invoke, plane: Target, started: list[ClusterPhase]
) -> None:
    plane.data["kubernetes_network"] = "none"
    assert invoke([plane], "create", "--yes").exit_code == 0
    assert [each.name for each in started] == ["Preflight", "Hosts", "Checks"]


@pytest.mark.parametrize("words", [("create", "--yes"), ("destroy", "--yes"), ("status",)])
def test_a_control_plane_is_needed(
    invoke: Invoke, words: tuple[str, ...], started: list[ClusterPhase]
) -> None:
    done = invoke([Target("@local", ("gpu_cluster",), {})], *words)
    assert (done.exit_code, started) == (2, [])
    assert "no host in the group control_plane" in done.output


@pytest.mark.parametrize("verb", ["create", "destroy"])
def test_a_cluster_is_created_and_destroyed_whole(
    invoke: Invoke, plane: Target, started: list[ClusterPhase], verb: str
) -> None:
    for option in (["--limit", "gpu-3"], ["--limit=gpu-3"], ["--exclude", "gpu-3"]):
        done = invoke([plane], verb, "--yes", "--", *option)
        assert (done.exit_code, started) == (2, [])
        assert f"{option[0].partition('=')[0]} is refused" in done.output


@pytest.mark.parametrize(("answer", "phases"), [("y\n", 4), ("n\n", 0), ("\n", 0)])
def test_nothing_is_done_without_a_yes(
    invoke: Invoke, plane: Target, started: list[ClusterPhase], answer: str, phases: int
) -> None:
    done = invoke([plane], "create", answer=answer)
    assert (done.exit_code, len(started)) == (0 if phases else 1, phases)
    assert "cp-1?" in done.output


@pytest.mark.parametrize("used", [{}, {"cluster_kubeconfig": "~/.kube/config"}])
def test_the_stack_goes_to_no_other_cluster(
    invoke: Invoke, plane: Target, started: list[ClusterPhase], used: dict[str, str]
) -> None:
    done = invoke([plane, Target("@local", ("gpu_cluster",), used)], "create", "--yes")
    assert (done.exit_code, started) == (2, [])
    assert "cluster_kubeconfig of @local" in done.output


class TestDestroy:
    @pytest.mark.parametrize(("words", "names"), [
        ((), ["destroy_cluster.py"]),
        (("--all",), ["destroy_cluster.py", "remove.py"]),
    ])  # fmt: skip
    def test_hosts_are_reset_and_this_machines_files_stay(
        self, invoke: Invoke, plane: Target, started: list[ClusterPhase], access: Path,
        words: tuple[str, ...], names: list[str],
    ) -> None:  # fmt: skip
        """The pyinfra run removes the kubeconfig, so a dry run keeps it."""
        assert invoke([plane], "destroy", "--yes", *words).exit_code == 0
        assert [Path(str(each.words[-1])).name for each in started] == names
        assert access.exists()

    @pytest.mark.parametrize(("pods", "code"), [(PODS, "GF955"), (None, "GF956")])
    def test_gpu_work_needs_a_word(
        self, invoke: Invoke, plane: Target, started: list[ClusterPhase], pods: Any, code: str
    ) -> None:
        done = invoke([plane], "destroy", "--yes", pods=pods)
        assert (done.exit_code, started) == (1, [])
        assert code in done.output
        assert "--ignore-gpu-pods" in done.output
        done = invoke([plane], "destroy", "--yes", "--ignore-gpu-pods", pods=pods)
        assert (done.exit_code, len(started)) == (0, 1)

    @pytest.mark.parametrize(("trusted", "status"), [("aa", 0), ("bb", 1), ("", 1)])
    def test_pods_of_another_cluster_say_nothing(
        self, invoke: Invoke, plane: Target, started: list[ClusterPhase], trusted: str, status: int,
    ) -> None:  # fmt: skip
        """The kubeconfig may be of another cluster: it trusts another authority, or it names no
        authority, so that its cluster is not known."""
        done = invoke([plane], "destroy", "--yes", trusted=trusted)
        assert (done.exit_code, len(started)) == (status, 1 - status)
        said = "does not trust the authority of the cluster of cp-1."
        assert (said in done.output) == bool(status)

    def test_twice(self, invoke: Invoke, plane: Target, started: list[ClusterPhase]) -> None:
        """After the first run no host is a node, so the command asks nothing."""
        assert invoke([plane], "destroy", "--yes", pods=None, joined=()).exit_code == 0
        assert len(started) == 1


class TestStatus:
    def test_a_table_of_the_nodes(self, invoke: Invoke, plane: Target) -> None:
        done = invoke([plane], "status", pods=PODS, nodes=[node("gpu-1", gpus=8)])
        assert done.exit_code == 0
        assert done.output.splitlines() == [
            "NODE   STATUS  ROLE    VERSION  GPUS USED",
            "gpu-1  Ready   worker  v1.36.3  3 of 8",
            "pod not ready: kube-system/dns",
        ]

    def test_a_node_that_is_not_ready_is_a_failure(self, invoke: Invoke, plane: Target) -> None:
        done = invoke([plane], "status", nodes=[node("gpu-1", "Unknown")])
        assert done.exit_code == 1
        assert "gpu-1: runtime is down" in done.output

    @pytest.mark.parametrize(
        ("known", "status"), [(("gpu-1", "10.0.0.7"), 0), (("gpu-1",), 1), ((), 1)]
    )
    def test_a_host_that_is_no_node_is_a_failure(
        self, invoke: Invoke, known: tuple[str, ...], status: int
    ) -> None:
        """If the node was deleted by hand, its kubelet does not register again."""
        data = {"kubernetes_enabled": True, "kubernetes_kubeconfig": "k"}
        hosts = [Target("GPU-1", ("control_plane",), data)]
        hosts += [Target("gpu-2", (), {**data, "ssh_hostname": "10.0.0.7"})]
        hosts += [Target("other", (), {})]
        nodes = [node(name) for name in known]
        for each in nodes:
            each["status"]["addresses"] = [{"address": each["metadata"]["name"]}]
        done = invoke(hosts, "status", nodes=nodes)
        assert done.exit_code == status
        if status:
            assert (
                f"GF295 The cluster has {count_noun(len(known), 'node')} for 2 hosts" in done.output
            )
            assert "gpu-2" in done.output
            assert ("of GPU-1, gpu-2." in done.output) == (not known)

    def test_waiting_ends_with_a_ready_cluster_or_in_time(
        self, invoke: Invoke, plane: Target, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(cluster_view, "CLUSTER_POLL_SECONDS", 0.01)
        late = node("gpu-1", "False")

        def settle(_: float) -> None:
            late["status"]["conditions"][0]["status"] = "True"

        assert invoke([plane], "status", "--wait", "0.05", nodes=[late]).exit_code == 1
        assert invoke([plane], "status", "--wait", "0.05", pods=None).exit_code == 1
        monkeypatch.setattr(cluster_view.time, "sleep", settle)
        assert invoke([plane], "status", "--wait", "60", nodes=[late]).exit_code == 0

    def test_json(self, invoke: Invoke, plane: Target) -> None:
        done = invoke([plane], "status", "--json", nodes=[node("gpu-1", gpus=8)])
        data = json.loads(done.output)
        assert data["ready"] is True
        assert data["nodes"][0]["gpus"] == 8

    @pytest.mark.parametrize("nodes", [[], None])
    def test_no_answer_is_a_failure(self, invoke: Invoke, plane: Target, nodes: Any) -> None:
        done = invoke([plane], "status", nodes=nodes, pods=None if nodes is None else ())
        assert done.exit_code == 1


@pytest.mark.parametrize("node", [
    {"metadata": {"name": "x"}, "status": ["a"]},
    {"metadata": {}},
])  # fmt: skip
def test_an_answer_in_another_form_is_none(invoke: Invoke, plane: Target, node: Any) -> None:
    done = invoke([plane], "status", nodes=[node])
    assert done.exit_code == 1
    assert isinstance(done.exception, SystemExit)
    assert "unexpected response" in done.output


@pytest.mark.parametrize("pod", [
    {"metadata": {"name": "p"}, "spec": {"nodeName": "n", "containers": ["x"]}},
    {"metadata": {"name": "p"}, "spec": "x"},
])  # fmt: skip
def test_pods_in_another_form_are_unknown(
    invoke: Invoke, plane: Target, started: list[ClusterPhase], pod: Any
) -> None:
    done = invoke([plane], "destroy", "--yes", pods=[pod])
    assert (done.exit_code, started, done.stdout) == (1, [], "")
    assert "GF956" in done.stderr


def test_without_a_path_the_access_is_unknown() -> None:
    assert cluster_view.kubeconfig_of([Target("cp-1", ("control_plane",), {})]) == ""
    found = cluster_view.why_not_destroy("", {"cp-1": frozenset()})
    assert "GF956" in found
    assert "sets kubernetes_kubeconfig. These hosts are nodes: cp-1." in found


def test_a_cluster_that_cannot_be_read_has_its_code_and_its_way_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    targets = [Target("cp-1", ("control_plane",), {})]
    monkeypatch.setattr(cluster, "targets_of", lambda inventory, limit: targets)
    done = CliRunner().invoke(cluster.cluster, ["status", "inv.py"])
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr.startswith("GF957 No host of the group control_plane sets ")
    assert "  Set kubernetes_kubeconfig to the path" in done.stderr
