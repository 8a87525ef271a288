"""`gpufleet doctor`: exit statuses, options and files, on hosts made of facts."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree

import jsonschema
import pytest
from click.testing import CliRunner, Result

import gpufleet
from gpufleet.cli import diagnosis, doctor, main, reading
from gpufleet.core.live import QUIET
from gpufleet.facts.health import HostHealth
from gpufleet.monitoring.alert_models import Alert, load_alerts
from gpufleet.monitoring.alert_rules import doctor_commands
from gpufleet.status.models import SeenHost
from gpufleet.verify.inventory import Target
from tests.unit.doctor.faults import FAULTS
from tests.unit.doctor.machines import machine, on_containerd
from tests.unit.status.fleets import NOW, seen, silent

SCHEMA = Path(gpufleet.__file__).parent / "status/doctor.schema.json"
ALERTS = [alert for alert in load_alerts().alerts if alert.doctor]
Run = Callable[..., Result]
GOOD = seen("gpu-01", machine())
WRONG_CLOCK = seen("gpu-02", FAULTS["clock is wrong"][0](machine()))
UNLOADED = seen("gpu-03", FAULTS["not loaded"][0](machine()))
SILENT = silent("gpu-04")
LAB = {"status": "converged", "releases": {}, "plan": {"steps": []}, "findings": []}
NO_GPUS = {
    "code": "GF873", "severity": "warning", "message": "No node offers a GPU.", "remedy": "Wait.",
}  # fmt: skip


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Run:
    """`run(hosts, words…)`: the command, where these hosts would answer."""
    monkeypatch.delenv(QUIET, raising=False)
    monkeypatch.setattr(doctor, "time", SimpleNamespace(time=lambda: NOW))

    def runs(hosts: Sequence[SeenHost], *words: str, **clusters: object) -> Result:
        def read(
            inventory: str, limit: Sequence[str], *, health: bool, more: object = None
        ) -> object:
            assert health
            return list(hosts), [Target(name, ("gpu_cluster",), {}) for name in clusters]

        for module in (reading, diagnosis):
            monkeypatch.setattr(module, "read_hosts_and_clusters", read)
        monkeypatch.setattr(diagnosis, "read_clusters", lambda inventory, names: clusters)
        monkeypatch.setattr(diagnosis, "read_api_servers", lambda targets, parts: ())
        monkeypatch.setattr(diagnosis, "ask_prometheus", lambda targets: ())
        return CliRunner().invoke(main, ["doctor", "inv.py", *words])

    return runs


@pytest.mark.parametrize(
    ("hosts", "status"),
    [
        ([], 0),
        ([GOOD], 0),
        ([GOOD, WRONG_CLOCK], 1),
        ([GOOD, UNLOADED], 2),
        ([SILENT], 2),
        ([SILENT, WRONG_CLOCK], 2),
    ],
)
@pytest.mark.parametrize("words", [[], ["--json"], ["--for", "prolog"]])
def test_the_worst_verdict_is_the_exit_status(
    run: Run, hosts: list[SeenHost], status: int, words: list[str]
) -> None:
    if words == ["--for", "prolog"] and WRONG_CLOCK in hosts:
        hosts = [host for host in hosts if host is not WRONG_CLOCK]  # a matter of this machine, too
        status = 0 if status == 1 else status
    assert run(hosts, *words).exit_code == status


def test_one_line_and_status_for_a_prolog(run: Run) -> None:
    done = run([UNLOADED], "--for", "prolog")
    assert done.exit_code == 2
    (line,) = done.stdout.splitlines()
    assert line.startswith("gpufleet CRITICAL; gpu-03: chain.loaded ")
    assert done.stderr == ""
    assert run([GOOD], "--for", "prolog").stdout == "gpufleet PASS\n"


def test_a_prolog_does_not_judge_the_plan(run: Run) -> None:
    invalid = FAULTS["invalid daemon.json"][0](machine())
    assert run([seen("gpu-05", invalid, toolkit_enabled=True)]).exit_code == 2
    assert run([seen("gpu-05", invalid)], "--for", "prolog").exit_code == 0


def test_the_json_has_causes_with_commands(run: Run) -> None:
    document = json.loads(run([GOOD, UNLOADED, SILENT], "--json", lab=LAB).stdout)
    jsonschema.validate(document, json.loads(SCHEMA.read_text()))
    verdicts = {name: host["verdict"] for name, host in document["hosts"].items()}
    assert verdicts == {"gpu-01": "PASS", "gpu-03": "CRITICAL", "gpu-04": "UNKNOWN"}
    (cause,) = document["hosts"]["gpu-03"]["causes"]
    assert (cause["check"], cause["code"]) == ("chain.loaded", "GF150")
    assert cause["steps"][0]["command"] == "gpufleet apply inv.py --limit gpu-03"
    assert document["clusters"]["lab"]["verdict"] == "PASS"


def test_each_cause_of_a_cluster_alone_is_shown(run: Run) -> None:
    old = {"code": "GF848", "severity": "warning", "message": "Its CRDs are old.", "remedy": "-"}
    unselected = {**old, "code": "GF876", "message": "It is not selected."}
    shown = run([], lab={**LAB, "findings": [unselected, old]}).stdout
    assert "GF876" in shown
    assert "GF848" in shown


def test_a_cluster_that_offers_nothing_and_one_that_was_not_read(run: Run) -> None:
    empty = {**LAB, "findings": [NO_GPUS]}
    done = run([], lab=empty)
    assert done.exit_code == 1
    assert "cluster.offered" in done.stdout
    assert run([GOOD], lab=None).exit_code == 2


def test_checks_are_chosen(run: Run) -> None:
    clock = replace(UNLOADED, facts=FAULTS["clock is wrong"][0](machine()))
    assert run([clock], "--check", "chain.loaded,chain.nvml").exit_code == 0
    assert run([clock], "--skip", "host.clock").exit_code == 0
    assert run([clock], "--check", "host.clock").exit_code == 1
    assert run([SILENT], "--check", "host.clock").exit_code == 2, "nothing is known of the host"


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert.name)
def test_the_command_of_an_alert(run: Run, alert: Alert) -> None:
    for command in doctor_commands(alert.doctor, "gpu-01"):
        _, _, _, *words = shlex.split(command)
        done = run([GOOD], *words, lab=LAB)
        assert (done.exit_code, done.stderr) == (0, ""), done.output


def test_a_gpu_that_was_not_read_does_not_pass(run: Run) -> None:
    unread = seen("gpu-05", machine(health=HostHealth(error="Unable to talk to the driver")))
    done = run([unread], "--check", "gpu.ecc_uncorrected")
    assert done.exit_code == 2
    assert done.stdout.startswith("UNKNOWN gpu-05")
    assert run([GOOD], "--check", "gpu.ecc_uncorrected").exit_code == 0


@pytest.mark.parametrize(
    "words",
    [["--check", "chain.nosuch"], ["--skip", ""], ["--for", "slurm"], ["--nosuch"],
     ["--json", "--for", "prolog"], ["--textfile", "none/x.prom"], ["--textfile", "x.txt"],
     ["--junit", "/proc/none/x.xml"], ["--check", "host.clock", "--skip", "host.clock"]],
)  # fmt: skip
def test_wrong_usage_gives_no_verdict(run: Run, words: list[str]) -> None:
    done = run([GOOD], *words)
    assert (done.exit_code, done.stdout) == (2, "")


def test_junit_has_a_failure_for_each_failed_check(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "doctor.xml"
    run([GOOD, UNLOADED], "--junit", str(path))
    suites = {each.get("name"): each for each in ElementTree.parse(path).getroot()}
    assert suites["gpu-01"].get("failures") == "0"
    failed = [case.get("name") for case in suites["gpu-03"] if case.find("failure") is not None]
    assert failed == ["chain.loaded"]
    assert int(suites["gpu-01"].get("tests", "0")) > 10


def test_metrics_for_node_exporter(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "doctor.prom"
    run([GOOD, UNLOADED], "--quiet", "--textfile", str(path))
    lines = path.read_text().splitlines()
    assert 'gpufleet_doctor_verdict{host="gpu-01",verdict="PASS"} 1' in lines
    assert 'gpufleet_doctor_verdict{host="gpu-03",verdict="CRITICAL"} 1' in lines
    loaded = '{host="gpu-03",check="chain.loaded",gpu="",cause="true"} 4'
    assert f"gpufleet_doctor_check{loaded}" in lines


def test_quiet_prints_nothing_of_a_fleet_that_passes(run: Run) -> None:
    assert run([GOOD], "--quiet").stdout == ""
    assert "gpu-03" in run([GOOD, UNLOADED], "--quiet").stdout


def test_text_of_a_host_is_never_a_control_character(run: Run) -> None:
    facts = machine(broken="evil\x1b]0;x\x07 [bold] is half-configured")
    for words in ([], ["--for", "prolog"]):
        done = run([seen("gpu-05", facts)], *words)
        assert "\x1b" not in done.stdout
        assert r"\x1b]0;x\x07 [bold]" in done.stdout.replace("\n", "")


def test_a_node_of_kubernetes_is_drained_before_a_reboot(run: Run) -> None:
    for facts, drained in ((machine(), False), (on_containerd(machine()), True)):
        host = seen("gpu-05", FAULTS["GPU fell off the bus"][0](facts))
        document = json.loads(run([host], "--json").stdout)
        (cause,) = document["hosts"]["gpu-05"]["causes"]
        (reboot,) = [each["command"] for each in cause["steps"] if each["id"] == "reboot"]
        assert reboot.endswith("ssh gpu-05 sudo systemctl reboot")
        assert reboot.startswith("kubectl drain gpu-05 ") == drained
