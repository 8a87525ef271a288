"""Clusters start, are found again, fail with a reason, and leave nothing behind."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from kubernetes import client

from gpufleet.cli import main
from gpufleet_sandbox import SandboxError
from gpufleet_sandbox.cluster import Cluster
from gpufleet_sandbox.cluster.processes import Process, end, free_ports, start
from gpufleet_sandbox.cluster.programs import choose
from gpufleet_sandbox.waiting import wait_until

UP = ["sandbox", "cluster", "up", "--nodes", "1"]


def minor(cluster: Cluster) -> str:
    return cluster.version.rpartition(".")[0]


@pytest.fixture
def other(simulated: Cluster) -> Iterator[str]:
    """The name of a second cluster, which is stopped after the test."""
    name = f"{simulated.name}-other"
    yield name
    found = Cluster.find(name)
    if found:
        found.down()


def test_up_finds_a_running_cluster_and_refuses_another_version(simulated: Cluster) -> None:
    again = Cluster.up(simulated.name, minor(simulated), progress=print)
    assert again.processes == simulated.processes
    different = "1.36" if minor(simulated) != "1.36" else "1.18"
    with pytest.raises(SandboxError, match="GF653"):
        Cluster.up(simulated.name, different, progress=print)


@pytest.mark.parametrize("name", ["..", "../other", "Upper", "", "-x", "a" * 64])
def test_an_invalid_name_is_refused(name: str) -> None:
    with pytest.raises(SandboxError, match="GF657"):
        Cluster.up(name, progress=print)


def test_an_unknown_version_is_refused_before_any_build() -> None:
    with pytest.raises(SandboxError, match=r"GF650.*1\.36"):
        Cluster.up("none", "1.99", progress=print)
    assert Cluster.find("none") is None


def test_down_leaves_no_process_and_no_file(simulated: Cluster, other: str) -> None:
    runner = CliRunner()
    done = runner.invoke(main, [*UP, "--name", other, "--kubernetes", minor(simulated)])
    assert done.exit_code == 0, done.output
    done = runner.invoke(main, ["sandbox", "cluster", "status", "--name", other, "--json"])
    state = json.loads(done.output)
    assert (state["up"], state["ready_nodes"]) == (True, ["gpu-1"])
    found = Cluster.find(other)
    assert found
    done = runner.invoke(main, ["sandbox", "cluster", "down", "--name", other])
    assert "ended 5 processes" in done.output
    assert not any(process.alive for process in found.processes)
    assert not Path(state["kubeconfig"]).parent.exists()
    assert found.down() == 0  # as when two commands stop it
    done = runner.invoke(main, ["sandbox", "cluster", "status", "--name", other])
    assert done.exit_code == 1
    assert "GF651" in done.output


@pytest.mark.extended
def test_two_commands_at_once_start_one_cluster(simulated: Cluster, other: str) -> None:
    words = [sys.executable, "-c", "from gpufleet.cli import main; main()"]
    both = [
        subprocess.Popen(
            [*words, *UP, "--name", other, "--kubernetes", minor(simulated)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for _ in range(2)
    ]  # fmt: skip
    said = [each.communicate(timeout=900) for each in both]
    assert [each.returncode for each in both] == [0, 0], said
    assert sum("starting Kubernetes" in progress for _, progress in said) == 1
    assert sum("waiting for another process" in progress for _, progress in said) == 1


@pytest.mark.extended
def test_a_cluster_with_a_dead_server_is_recreated(simulated: Cluster, other: str) -> None:
    first = Cluster.up(other, minor(simulated), nodes=1, progress=print)
    assert end(first.processes[1:2]) == 1
    assert not first.alive
    second = Cluster.up(other, minor(simulated), nodes=1, progress=print)
    assert second.alive
    assert not any(process.alive for process in first.processes)


def test_a_process_with_a_reused_pid_is_left_alone(tmp_path: Path) -> None:
    running = start("sleep", ["sleep", "60"], tmp_path / "log", {})
    stranger = Process("sleep", running.pid, "1")
    assert end([stranger]) == 0
    assert running.alive
    assert end([running]) == 1
    assert not running.alive


def listening(pid: int) -> set[str]:
    """The addresses that a process listens on, in the format of /proc/net/tcp."""
    sockets = {
        os.readlink(handle)[len("socket:[") : -1]
        for handle in Path(f"/proc/{pid}/fd").iterdir()
        if os.readlink(handle).startswith("socket:[")
    }
    rows = [
        line.split()
        for table in ("tcp", "tcp6")
        for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]
    ]
    return {row[1].split(":")[0] for row in rows if row[3] == "0A" and row[9] in sockets}


def test_servers_listen_only_on_loopback(simulated: Cluster) -> None:
    loopback = socket.inet_aton("127.0.0.1")[::-1].hex().upper()

    def found() -> dict[str, set[str]]:
        return {process.name: listening(process.pid) for process in simulated.processes}

    # once the controller manager has created this account, it would also listen
    core: Any = client.CoreV1Api(simulated.api)
    accounts = core.list_namespaced_service_account
    assert wait_until(lambda: bool(accounts("default").items), 120)
    servers = {"etcd", "kube-apiserver"}
    assert {name for name, where in found().items() if where} == servers
    assert set().union(*found().values()) == {loopback}, found()


def test_only_the_user_can_read_keys_and_tokens(simulated: Cluster) -> None:
    assert simulated.folder.stat().st_mode & 0o077 == 0
    tokens = simulated.folder / "tokens.csv"
    secret = [simulated.kubeconfig, tokens, *simulated.folder.glob("*.key")]
    assert len(secret) == 6
    for path in secret:
        assert path.stat().st_mode & 0o077 == 0, path
    token = tokens.read_text().partition(",")[0]
    for process in simulated.processes:
        assert token not in Path(f"/proc/{process.pid}/cmdline").read_text()
        assert token not in Path(f"/proc/{process.pid}/environ").read_text()


def test_ports_in_use_are_not_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as taken:
        (port,) = free_ports(1)
        taken.bind(("127.0.0.1", port))
        taken.listen()
        monkeypatch.setattr("random.sample", lambda *_: [port, port + 1])
        assert port not in free_ports(1)


def assets(folder: Path, cluster: Cluster, *names: str) -> Path:
    """A folder with programs of a running cluster, as setup-envtest creates it."""
    for name in names:
        (running,) = (each.pid for each in cluster.processes if each.name == name)
        (folder / name).symlink_to(os.readlink(f"/proc/{running}/exe"))
    return folder


@pytest.mark.extended
def test_programs_of_kubebuilder_assets_are_used(
    simulated: Cluster, other: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = assets(tmp_path, simulated, "etcd", "kube-apiserver")
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(folder))
    found = Cluster.up(other, minor(simulated), nodes=1, progress=print)
    started = {
        each.name: Path(Path(f"/proc/{each.pid}/cmdline").read_text().split("\0")[0])
        for each in found.processes
    }
    assert started["etcd"] == folder / "etcd"
    assert started["kube-apiserver"] == folder / "kube-apiserver"
    assert started["kube-scheduler"].parent != folder
    said: list[str] = []
    different = "1.36" if minor(simulated) != "1.36" else "1.18"
    assert choose(different, said.append).given == {}
    assert f"holds Kubernetes {simulated.version}" in said[0]


@pytest.mark.extended
def test_an_api_server_that_exits_is_reported_with_its_output(
    simulated: Cluster, other: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = assets(tmp_path, simulated, "etcd")
    server = folder / "kube-apiserver"
    server.write_text(
        "#!/bin/sh\n"
        f'[ "$1" = --version ] && echo Kubernetes v{simulated.version} && exit\n'
        "echo no such flag as this >&2; exit 1\n"
    )
    server.chmod(0o755)
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(folder))
    with pytest.raises(SandboxError, match=r"GF652.*kube-apiserver.*no such flag as this"):
        Cluster.up(other, minor(simulated), nodes=1, progress=print)
    left = Cluster.find(other)
    assert left
    assert not any(process.alive for process in left.processes)
    server.write_text("#!/bin/sh\necho something else\n")
    with pytest.raises(SandboxError, match=r"GF656.*something else"):
        Cluster.up(other, minor(simulated), nodes=1, progress=print)


def test_a_cluster_of_a_kubeconfig_is_used_and_left_alone(cluster: Cluster, tmp_path: Path) -> None:
    found = Cluster.existing(cluster.kubeconfig, progress=print)
    assert (found.version, found.alive) == (cluster.version, True)
    assert found.down() == 0
    assert cluster.alive
    assert found.ready_nodes() == cluster.ready_nodes()
    with pytest.raises(SandboxError, match="GF658"):
        Cluster.existing(tmp_path / "missing", progress=print)
