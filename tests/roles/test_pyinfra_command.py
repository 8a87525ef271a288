"""The pyinfra command on our deploys: exit statuses and the report, on fake hosts."""

from __future__ import annotations

import json
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import gpufleet
from tests import warm

pytestmark = pytest.mark.claim(
    "Exit statuses and reports are right after an abort, Ctrl-C, a limit that fits no "
    "host, and an unwritable report.",
    level=2,
)

ROOT = Path(__file__).resolve().parents[2]
SCHEMA = Path(gpufleet.__file__).parent / "run" / "report.schema.json"
PYINFRA = Path(sys.executable).with_name("pyinfra")
BAD = {"driver_branch": "no branch"}  # stops a host before its first command
QUICK = {"fake_delay": 0.0, "fake_delay_jitter": 0.0}


@dataclass
class Ended:
    """A run: exit status, output, report (None: no report)."""

    status: int
    output: str
    report: dict[str, Any] | None

    def statuses(self) -> dict[str, str]:
        assert self.report
        return {name: part["status"] for name, part in self.report["hosts"].items()}


class Bench:
    """Inventories and reports in a separate folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.report = folder / "report.json"
        self.inventory = folder / "inventory.py"
        self.hosts()

    def hosts(self, before: str = "", **hosts: dict[str, Any]) -> None:
        """Write the inventory: name -> data. `before` is Python that runs when it is loaded."""
        group = [(f"@fake/{name}", QUICK | data) for name, data in hosts.items()]
        self.inventory.write_text(f"{before}\ngpu_nodes = {group!r}\n")

    def command(self, deploy: str, *options: str) -> list[str]:
        return [str(PYINFRA), *options, str(self.inventory), f"deploys/{deploy}.py"]

    def environment(self, report: Path) -> dict[str, str]:
        return {**os.environ, "GPUFLEET_REPORT": str(report)}

    def run(self, deploy: str, *options: str, report: Path | None = None) -> Ended:
        path = report or self.report
        command = self.command(deploy, *options)
        status, output = warm.ended(command, ROOT, self.environment(path))
        return Ended(status, output, None if path == self.inventory else self.read(path))

    def read(self, path: Path) -> dict[str, Any] | None:
        """The report, validated against the schema."""
        if not path.is_file():
            return None
        report: dict[str, Any] = json.loads(path.read_text())
        jsonschema.validate(report, json.loads(SCHEMA.read_text()))
        return report


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_a_host_that_is_stopped_is_failed_and_the_run_says_no_line_of_code(bench: Bench) -> None:
    bench.hosts(one=BAD)
    done = bench.run("gpu_node", "-y")
    assert done.status == 1
    assert done.statuses() == {"@fake/one": "failed"}
    assert done.report
    head = {key: done.report[key] for key in ("schema", "inventory", "dry", "exit_status")}
    assert head == {"schema": 1, "inventory": str(bench.inventory), "dry": False, "exit_status": 1}
    assert done.report["gpufleet"] == gpufleet.__version__
    assert done.report["started"] <= done.report["finished"]
    assert "pyinfra error" not in done.output
    assert ".py line" not in done.output
    assert "GF202" in done.output
    assert bench.report.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("data", "code"),
    [
        ({"_sudo": True, "_sudo_password": "hunter2\nrm"}, "GF506"),
        ({"_su_user": "root", "_su_password": "hunter2"}, "GF558"),
    ],
)
def test_a_password_that_cannot_be_handed_over_stops_its_host(
    bench: Bench, data: dict[str, Any], code: str
) -> None:
    bench.hosts(one=data)
    ended = bench.run("gpu_node", "-y")
    assert ended.status == 1
    assert f"{code} blocker @fake/one:" in " ".join(ended.output.split())
    assert "hunter2" not in ended.output


def test_hosts_after_an_abort_are_not_reached(bench: Bench) -> None:
    slow = {"fake_delay": 30.0}
    bench.hosts(one=BAD, two=slow, three=slow)
    done = bench.run("gpu_node", "-y", "--serial", "--fail-percent", "10")
    assert done.status == 1
    assert done.statuses() == {
        "@fake/one": "failed", "@fake/two": "not reached", "@fake/three": "not reached",
    }  # fmt: skip
    assert "no changes" not in done.output.rsplit("\n3 hosts: ", 1)[0]
    assert "1 blocked, 2 not reached" in done.output
    assert ".py line" not in done.output


@pytest.mark.parametrize("option", ["--limit", "--exclude"])
def test_a_limit_that_matches_nothing_is_status_4(bench: Bench, option: str) -> None:
    bench.hosts(one=BAD)
    done = bench.run("gpu_node", "-y", option, "nosuch" if option == "--limit" else "gpu_nodes")
    assert done.status == 4
    assert "GF004" in done.output
    assert done.report
    assert (done.report["exit_status"], done.report["hosts"]) == (4, {})


def test_a_missing_inventory_is_a_usage_error(bench: Bench) -> None:
    bench.inventory.unlink()
    done = bench.run("gpu_node", "-y")
    assert (done.status, done.report) == (2, None)
    assert "GF701" in done.output


def test_a_report_does_not_take_the_place_of_the_inventory(bench: Bench) -> None:
    bench.hosts(one=BAD)
    text = bench.inventory.read_text()
    done = bench.run("gpu_node", "-y", "--limit", "nosuch", report=bench.inventory)
    assert done.status == 2
    assert "GF001" in done.output
    assert bench.inventory.read_text() == text


@pytest.mark.parametrize("order", [("gpu_node", "preflight"), ("preflight", "gpu_node")])
def test_preflight_beside_another_deploy_is_refused(bench: Bench, order: tuple[str, str]) -> None:
    loaded = bench.folder / "loaded"
    bench.hosts(f"open({str(loaded)!r}, 'w').close()", one={})
    first, second = (f"deploys/{name}.py" for name in order)
    command = [str(PYINFRA), "-y", str(bench.inventory), first, second]
    status, output = warm.ended(command, ROOT, bench.environment(bench.report))
    assert (status, bench.read(bench.report)) == (2, None)
    assert "GF011" in output
    assert f"{first} and {second}" in output
    assert not loaded.exists(), "not even the inventory is loaded"


@pytest.mark.parametrize("place", ["folder", "missing", "proc"])
def test_a_report_that_cannot_be_written_stops_the_run_before_a_host(
    bench: Bench, place: str
) -> None:
    loaded = bench.folder / "loaded"
    bench.hosts(f"open({str(loaded)!r}, 'w').close()", one={})
    path = {
        "folder": bench.folder, "missing": bench.folder / "none" / "report.json",
        "proc": Path("/proc/report.json"),
    }[place]  # fmt: skip
    done = bench.run("gpu_node", "-y", report=path)
    assert done.status == 2
    assert "GF001" in done.output
    assert "Traceback" not in done.output
    assert not loaded.exists(), "not even the inventory is loaded"


def test_an_old_report_is_gone_when_the_run_begins(bench: Bench) -> None:
    bench.report.write_text('{"schema": 1, "gpufleet": "0", "hosts": {}}')
    bench.hosts(f"import os; assert not os.path.exists({str(bench.report)!r})", one=BAD)
    assert bench.run("gpu_node", "-y").statuses() == {"@fake/one": "failed"}


def test_a_report_that_is_lost_at_the_end_is_status_1(bench: Bench) -> None:
    folder = bench.folder / "reports"
    folder.mkdir()
    gone = f"import os; os.rmdir({str(folder)!r}); open({str(folder)!r}, 'w').close()"
    bench.hosts(gone)
    without_a_host = bench.run("gpu_node", "-y", report=folder / "report.json")
    assert without_a_host.status == 4, "the usage error takes precedence"
    folder.unlink()
    folder.mkdir()
    bench.hosts(gone, one={"driver_enabled": False})
    done = bench.run("preflight", "-y", report=folder / "report.json")
    assert done.status == 1
    assert "GF002" in done.output
    assert "Traceback" not in done.output


def test_a_deploy_that_applies_to_no_host_is_a_usage_error(bench: Bench) -> None:
    bench.inventory.write_text("gpu_cluster = ['@fake/a']\n")
    done = bench.run("gpu_node", "-y")
    assert done.status == 2
    assert "GF009" in done.output
    assert done.report
    assert done.report["exit_status"] == 2
    bench.hosts(one={})
    assert bench.run("gpu_cluster", "-y").status == 2


def test_a_run_of_two_deploys_reports_the_hosts_of_either(bench: Bench) -> None:
    bench.hosts(one=BAD)
    with bench.inventory.open("a") as file:
        file.write("gpu_cluster = [('@fake/lab', {'cluster_timeout': 'no number'})]\n")
    command = [*bench.command("gpu_node", "-y"), "deploys/gpu_cluster.py"]
    status, output = warm.ended(command, ROOT, bench.environment(bench.report))
    assert status == 1, output
    assert "GF009" not in output
    found = bench.read(bench.report)
    assert found
    assert {name: part["status"] for name, part in found["hosts"].items()} == {
        "@fake/one": "failed",
        "@fake/lab": "failed",
    }


def test_a_removal_is_of_hosts_and_clusters(bench: Bench) -> None:
    bench.hosts(one=BAD)
    missing = {"cluster_kubeconfig": str(bench.folder / "nosuch")}
    with bench.inventory.open("a") as file:
        file.write(f"gpu_cluster = [('@fake/lab', {missing!r})]\n")
    done = bench.run("remove", "-y")
    assert (done.status, done.statuses()) == (1, {"@fake/one": "failed", "@fake/lab": "failed"})
    assert "GF861" in done.output
    assert done.report
    hosts = done.report["hosts"]
    assert {name: part["kind"] for name, part in hosts.items()} == {
        "@fake/one": "node",
        "@fake/lab": "cluster",
    }
    assert [found["code"] for found in hosts["@fake/lab"]["findings"]] == ["GF861"]
    assert "GF861" not in str(hosts["@fake/one"])


def test_a_removal_of_a_host_that_is_a_cluster_too_stops_with_it(bench: Bench) -> None:
    missing = QUICK | BAD | {"cluster_kubeconfig": str(bench.folder / "nosuch")}
    hosts = [("@fake/both", missing)]
    idle = "others = ['@fake/idle']"  # a run ends when no host remains
    text = f"gpu_nodes = {hosts!r}\ngpu_cluster = ['@fake/both']\n{idle}\n"
    bench.inventory.write_text(text)
    done = bench.run("remove", "-y")
    assert done.status == 1
    assert done.report
    found = done.report["hosts"]["@fake/both"]["findings"]
    assert [each["code"] for each in found] == ["GF861"]


def doctor(*words: str) -> subprocess.CompletedProcess[str]:
    return warm.completed([PYINFRA.with_name("gpufleet"), "doctor", *words], ROOT, os.environ)


def test_doctor_ends_with_the_same_statuses(bench: Bench) -> None:
    bench.hosts(one={})
    assert doctor(str(bench.inventory), "--limit", "nosuch").returncode == 4
    assert doctor(str(bench.folder / "nosuch.py")).returncode == 2
    assert doctor(str(bench.inventory), "--nosuch").returncode == 2


def test_doctor_says_of_each_host_that_none_answers(bench: Bench) -> None:
    closed = {"ssh_hostname": "127.0.0.1", "ssh_port": 1}
    bench.inventory.write_text(f"gpu_nodes = [('one', {closed}), ('two', {closed})]\n")
    done = doctor(str(bench.inventory))
    assert done.returncode == 2, done.stderr
    assert done.stdout.count("UNKNOWN 2 hosts (one, two)") == 1
    assert "Usage" not in done.stderr


def unusable_ways(folder: Path) -> dict[str, dict[str, Any]]:
    """Hosts whose data has unusable credentials: name -> data."""
    key, garbage, config = folder / "locked", folder / "garbage", folder / "config"
    words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "right one", "-f", str(key)]
    subprocess.run(words, check=True)
    garbage.write_text("no key at all\n")
    config.write_bytes(b"Host caf\xe9\n")
    at = {"ssh_hostname": "127.0.0.1", "ssh_port": 1}
    return {
        "missing": at | {"ssh_key": str(folder / "nowhere")},
        "garbage": at | {"ssh_key": str(garbage)},
        "passphrase": at | {"ssh_key": str(key), "ssh_key_password": "wrong one"},
        "config": at | {"ssh_config_file": str(config)},
    }


@pytest.mark.parametrize("command", ["gpu_node", "doctor"])
def test_a_host_whose_key_cannot_be_used_stops_alone(bench: Bench, command: str) -> None:
    ways = unusable_ways(bench.folder)
    hosts = [*ways.items(), ("@fake/good", QUICK | BAD)]
    bench.inventory.write_text(f"gpu_nodes = {hosts!r}\n")
    if command == "doctor":
        found = json.loads(doctor(str(bench.inventory), "--json").stdout)
        parts = {name: part["findings"] for name, part in found["hosts"].items()}
    else:
        done = bench.run("gpu_node", "-y")
        assert done.status == 1
        assert "Traceback" not in done.output
        assert done.report, done.output
        parts = {name: part["findings"] for name, part in done.report["hosts"].items()}
    assert "GF005" not in {finding["code"] for finding in parts.pop("@fake/good")}
    said = {name: (found[0]["code"], found[0]["message"]) for name, found in parts.items()}
    assert {code for code, _ in said.values()} == {"GF005"}
    for name in ("missing", "garbage", "passphrase"):
        assert str(ways[name]["ssh_key"]) in said[name][1]
    assert "UnicodeDecodeError" in said["config"][1]
    assert "wrong one" not in str(said)


def test_a_preflight_that_reaches_nobody_is_a_plan(bench: Bench) -> None:
    closed = {"ssh_hostname": "127.0.0.1", "ssh_port": 1, "ssh_usr": "root"}
    bench.inventory.write_text(f"gpu_nodes = [('one', {closed})]\n")
    (bench.folder / "group_data").mkdir()
    (bench.folder / "group_data/gpu-nodes.py").write_text("driver_branch = '580'\n")
    done = bench.run("preflight", "-y")
    assert (done.status, done.statuses()) == (1, {"one": "not reached"})
    assert done.report
    assert done.report["dry"]
    assert "0 to change" in done.output
    assert "GPU nodes" not in done.output
    described = " ".join(doctor(str(bench.inventory)).stdout.split())
    for meant in ("ssh_user", "gpu_nodes"):
        assert f"Did you mean {meant}?" in done.output
        assert f"Did you mean {meant}?" in described


def test_doctor_says_why_an_inventory_cannot_be_read(bench: Bench) -> None:
    for text, why in (("gpu_nodes = [", "SyntaxError"), ("import nosuch_module", "nosuch_module")):
        bench.inventory.write_text(text + "\n")
        done = doctor(str(bench.inventory))
        assert done.returncode == 2
        assert "GF701" in done.stderr
        assert why in done.stderr
        assert "Traceback" not in done.stderr


@pytest.fixture
def hostile() -> Iterator[dict[str, int]]:
    """Ports without an SSH server: with a page, or a reset."""
    with ExitStack() as servers:
        ports = {}
        for name, said in {"page": b"\xff\xfeHTTP/1.1 400 Bad\r\n\r\n", "reset": b""}.items():
            server = servers.enter_context(socket.create_server(("127.0.0.1", 0)))
            threading.Thread(target=_answer, args=(server, said), daemon=True).start()
            ports[name] = server.getsockname()[1]
        yield ports


def _answer(server: socket.socket, said: bytes) -> None:
    while True:
        try:
            client, _ = server.accept()
        except OSError:  # the test is over
            return
        with client:
            if said:
                client.sendall(said)
            else:
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


@pytest.mark.parametrize("command", ["gpu_node", "doctor"])
def test_what_is_no_ssh_server_is_said_without_a_stack_trace(
    bench: Bench, hostile: dict[str, int], command: str
) -> None:
    hosts = [
        (name, {"ssh_hostname": "127.0.0.1", "ssh_port": port}) for name, port in hostile.items()
    ]
    bench.inventory.write_text(f"gpu_nodes = {hosts!r}\n")
    if command == "doctor":
        ended = doctor(str(bench.inventory), "--json")
        status, output = ended.returncode, ended.stdout + ended.stderr
    else:
        done = bench.run("gpu_node", "-y")
        status, output = done.status, done.output
    assert status == (2 if command == "doctor" else 1)
    assert "Error reading SSH protocol banner" in output
    assert "GF005" in output
    assert "Traceback" not in output


def test_pyinfras_own_debug_output_hides_the_login(bench: Bench) -> None:
    login = {"ssh_hostname": "127.0.0.1", "ssh_port": 1, "ssh_password": "planted-login"}
    bench.inventory.write_text(f"gpu_nodes = [('one', {login!r})]\n")
    done = bench.run("gpu_node", "-y", "--debug")
    assert "Connecting to: 127.0.0.1" in done.output
    assert "planted-login" not in done.output


def test_doctor_does_not_ask_a_cluster_what_a_host_is(bench: Bench) -> None:
    bench.inventory.write_text("gpu_cluster = ['@local']\n")
    done = doctor(str(bench.inventory))
    assert done.returncode == 2
    assert done.stdout.startswith("UNKNOWN @local\n  cluster.answers: ")
    assert "Follows from it: cluster.prometheus\n" in done.stdout
    assert "kernel" not in done.stdout


def test_status_reads_hosts_and_clusters(bench: Bench) -> None:
    closed = {"ssh_hostname": "127.0.0.1", "ssh_port": 1}
    bench.inventory.write_text(f"gpu_nodes = [('one', {closed})]\ngpu_cluster = ['@local']\n")
    words = [PYINFRA.with_name("gpufleet"), "status", str(bench.inventory)]
    for limit, status, end in (
        ([], 1, "1 host: 1 unreachable, 0 without a flag"),
        (["--limit", "gpu_cl*"], 0, "1 cluster: 1 blocked, 0 without a flag"),
        (["--limit", "nosuch"], 4, ""),
    ):
        done = warm.completed([*words, *limit], ROOT, os.environ)
        assert done.returncode == status, done.stderr
        assert end in done.stdout
        assert ("1 cluster: 1 " in done.stdout) is (not limit or "gpu_cl*" in limit)
        assert ("GF005 blocker one" in done.stdout) is (not limit)
        assert "Traceback" not in done.stderr
    assert f"GF702 --limit nosuch matches no host or group of {bench.inventory}" in done.stderr
    assert "Hosts: one, @local. Groups: gpu_nodes, " in done.stderr


def test_results_are_on_standard_output_and_progress_is_not(bench: Bench) -> None:
    bench.hosts(one=BAD)
    variables = {**bench.environment(bench.report), "COLUMNS": "60"}
    done = warm.completed(bench.command("preflight", "-y"), ROOT, variables)
    assert done.returncode == 1
    assert "GF202 blocker @fake/one" in done.stdout
    assert done.stdout.endswith("1 host: 0 to change, 0 with no changes, 1 blocked\n")
    assert max(map(len, done.stdout.splitlines())) <= 60
    assert "\x1b" not in done.stdout
    assert "-->" not in done.stdout
    assert "GF202" not in done.stderr


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_run_that_a_signal_ends_has_its_table_and_report(
    bench: Bench, number: signal.Signals, status: int
) -> None:
    bench.hosts(one={"fake_delay": 600.0})
    with subprocess.Popen(
        bench.command("gpu_node", "-y"), cwd=ROOT, env=bench.environment(bench.report),
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    ) as process:  # fmt: skip
        assert process.stdout
        output = _until(process.stdout, lambda line: "Loading: deploys" in line)
        process.send_signal(number)
        rest, _ = process.communicate(timeout=900)
    assert process.returncode == status, [*output, rest]
    report = bench.read(bench.report)
    assert report
    assert report["exit_status"] == status
    assert report["hosts"]["@fake/one"]["status"] == "not reached"
    assert "1 not reached" in rest


def _until(lines: Any, wanted: Callable[[str], bool]) -> Sequence[str]:
    read = []
    for line in lines:
        read.append(line)
        if wanted(line):
            break
    return read
