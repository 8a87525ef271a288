"""The output of `gpufleet doctor` for hosts from captured facts."""

from __future__ import annotations

import io
import json
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from gpufleet.doctor.fleet import ReadFleet
from gpufleet.doctor.models import JudgedFleet
from gpufleet.doctor.table import choose_checks
from gpufleet.doctor.text import show_verdicts
from gpufleet.facts.parse import parse_node_facts
from gpufleet.node.settings import load_node_settings
from gpufleet.run.findings import UNREACHABLE
from gpufleet.status.models import SeenHost
from tests import warm
from tests.unit.hosts import record_of
from tests.unit.status.fleets import healthy, seen

CAPTURES = Path(__file__).parents[1] / "facts" / "captures"
NOW = 1_795_600_000


def captured(name: str, host: str = "gpu-07", **data: Any) -> SeenHost:
    lines = (CAPTURES / f"{name}.txt").read_text("utf-8").splitlines()
    settings, problems = load_node_settings(data)
    facts = parse_node_facts(lines)
    return SeenHost(host, ("gpu_nodes",), facts, settings=settings, problems=tuple(problems))


def examined(*hosts: SeenHost, inventory: str = "prod.py") -> JudgedFleet:
    return ReadFleet(inventory, hosts, {}).judge(choose_checks((), ()), NOW)


def described(host: SeenHost) -> dict[str, Any]:
    return examined(host).details[0].as_dict()


def printed(*hosts: SeenHost, width: int = 80, inventory: str = "prod.py") -> str:
    out = io.StringIO()
    show_verdicts(Console(file=out, width=width), examined(*hosts, inventory=inventory))
    return out.getvalue()


def test_a_host_with_a_driver() -> None:
    parts = described(captured("ubuntu2204-kubelet-handwritten"))
    (gpu,) = parts["gpus"]
    assert (gpu["model"], gpu["slot"]) == ("H100 SXM5 80GB", "0000:17:00.0")
    assert parts["driver"] == {
        "loaded": "580.95.05",
        "installed": "580.95.05",
        "modules": "open",
        "library": "580.95.05",
    }
    library = {"name": "libnvidia-compute-580", "version": "580.95.05-0ubuntu1", "held": True}
    assert library in parts["packages"]
    assert "python3 (4711)" in parts["gpu_processes"]
    assert (parts["kubelet"], parts["gpu_pods"]) == (True, 1)
    assert parts["collectors"] == [
        "dcgm-exporter (process 4711, of a pod of Kubernetes)",
        "DCGM's host engine (process 4712, of nvidia-dcgm.service)",
    ]
    assert {"GF120", "GF401", "GF715"} <= {finding["code"] for finding in parts["findings"]}
    assert json.loads(json.dumps(parts)) == parts


def test_what_plan_and_state_both_say_is_said_once_the_worst_first() -> None:
    parts = described(captured("el7-handwritten"))
    said = [(finding["code"], finding["message"]) for finding in parts["findings"]]
    assert len(said) == len(set(said))
    order = [finding["severity"] for finding in parts["findings"]]
    assert order == sorted(order, key=["blocker", "warning", "info"].index)


def test_what_the_state_says_comes_before_the_same_of_the_plan() -> None:
    version = "580.173.02"
    host = seen("gpu-07", healthy(version), driver_version=version)
    (insecure,) = [each for each in described(host)["findings"] if each["code"] == "GF120"]
    assert "gpufleet upgrade INVENTORY --to 580.178.04" in insecure["remedy"]


def test_no_secret_of_a_command_line_is_shown() -> None:
    parts = described(captured("k3s-handwritten"))
    assert "s3cret" not in json.dumps(parts)
    assert "s3cret" not in printed(captured("k3s-handwritten"))
    (runtime,) = parts["runtimes"]
    assert runtime["unit"] == "k3s-agent.service"
    assert "containerd 1.7.23 (k3s-agent.service, running, 7 containers)" in printed(
        captured("k3s-handwritten"), width=200
    )


def test_a_host_that_did_not_answer() -> None:
    problem = UNREACHABLE(host="gpu-07", cause="timed out")
    parts = described(SeenHost("gpu-07", problem=problem))
    (finding,) = parts["findings"]
    assert (parts["reached"], finding["code"]) == (False, "GF005")
    assert "--limit gpu-07" in finding["remedy"]


def test_a_lost_gpu_is_found() -> None:
    host = captured("ubuntu2204-sandbox")
    assert host.facts
    slots = tuple(gpu.slot for gpu in host.facts.gpus)
    lost = replace(host, facts=replace(host.facts, pci=host.facts.pci[:1], taken=slots))
    parts = described(lost)
    assert parts["missing_gpus"] == [slots[1]]
    assert "GF725" in {finding["code"] for finding in parts["findings"]}
    text = printed(lost)
    assert f"GPUs missing     at {slots[1]}" in text
    assert text.startswith("CRITICAL gpu-07")
    assert "chain.gpus" in text
    assert "(GF725)" in text


def test_a_gpu_that_does_not_respond_is_marked() -> None:
    host = captured("ubuntu2204-sandbox")
    assert host.facts
    first, second = host.facts.pci[:2]
    assert "does not respond" not in printed(host, width=200)
    silent = replace(host, facts=replace(host.facts, pci=(replace(first, answers=False), second)))
    text = printed(silent, width=200)
    assert f"at {first.slot}, kernel driver nvidia, does not respond" in text
    assert text.count("does not respond") == 1


@pytest.mark.parametrize("name", ["none.py", "empty.py"])
@pytest.mark.parametrize(("command", "status"), [(["doctor"], 2), (["status"], 2),
                                                 (["status", "--drift"], 1)])  # fmt: skip
def test_an_inventory_that_is_not_there_or_names_no_host(
    tmp_path: Path, name: str, command: list[str], status: int
) -> None:
    (tmp_path / "empty.py").write_text("gpu_nodes = []\n")
    gpufleet = Path(sys.executable).with_name("gpufleet")
    done = warm.completed([gpufleet, *command, name], tmp_path, os.environ)
    assert (done.returncode, done.stderr.startswith("GF701 ")) == (status, True), done.stderr
    assert done.stdout == ""


def test_settings_that_are_wrong_are_reported() -> None:
    parts = described(captured("el7-handwritten", driver_brunch="580"))
    assert any("driver_brunch" in finding["message"] for finding in parts["findings"])
    assert (parts["driver"]["library"], parts["steps"]) == (None, [])


def test_a_damaged_record_is_a_finding() -> None:
    host = captured("ubuntu2404-control-plane-sandbox")
    assert host.facts
    damaged = replace(host.facts, provenance=record_of(driver={"version": 580}))
    found = described(replace(host, facts=damaged))["findings"]
    (finding,) = [each for each in found if each["severity"] == "blocker"]
    assert finding["code"] == "GF557"
    assert "driver.version" in finding["message"]


@pytest.mark.parametrize("name", ["el7-handwritten", "ubuntu2204-kubelet-handwritten"])
def test_text_has_every_finding_and_step_and_fits_80_columns(name: str) -> None:
    host = captured(name)
    parts = described(host)
    text = printed(host)
    assert " gpu-07" in text.splitlines()[0]
    assert max(map(len, text.splitlines())) <= 80
    flat = " ".join(text.split())
    assert [step for step in parts["steps"] if step not in flat] == []
    assert [each["code"] for each in parts["findings"] if each["code"] not in text] == []


def test_several_hosts_are_grouped_by_cause_the_worst_first() -> None:
    same = [seen(f"gpu-{number}", healthy()) for number in range(1, 6)]
    silent = SeenHost("gpu-6", problem=UNREACHABLE(host="gpu-6", cause="timed out"))
    text = printed(*same, silent, width=200)
    lines = text.splitlines()
    assert lines[0].startswith("UNKNOWN gpu-6: host.answers: ")
    assert lines[1] == "  Next: ssh gpu-6 true"
    assert lines[2] == "PASS 5 hosts (gpu-[1-5])"
    assert lines[-1] == "6 hosts: 1 UNKNOWN, 5 PASS"


def test_an_unreachable_host_is_logged_in_to_as_the_inventory_does() -> None:
    data = {"ssh_hostname": "10.0.0.5", "ssh_user": "admin", "ssh_port": "2222", "rack": "7"}
    silent = SeenHost("gpu-6", problem=UNREACHABLE(host="gpu-6", cause="timed out"), data=data)
    assert "Next: ssh -p 2222 admin@10.0.0.5 true" in printed(
        silent, seen("gpu-1", healthy()), width=200
    )


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({"ssh_known_hosts_file": "keys/known"}, "-o UserKnownHostsFile=keys/known"),
        ({"ssh_known_hosts_file": "my keys"}, "-o 'UserKnownHostsFile=\"my keys\"'"),
        ({"ssh_known_hosts_file": "a;b"}, "-o 'UserKnownHostsFile=a;b'"),
        ({"ssh_config_file": "~/my config"}, "-F ~/'my config'"),
        ({"ssh_key": "~/.ssh/gpu", "ssh_config_file": "/c"}, "-F /c -i ~/.ssh/gpu"),
    ],
)
def test_ssh_gets_the_files_of_the_inventory(data: dict[str, str], words: str) -> None:
    silent = SeenHost("gpu-6", problem=UNREACHABLE(host="gpu-6", cause="timed out"), data=data)
    assert f"Next: ssh {words} gpu-6 true" in printed(silent, seen("gpu-1", healthy()), width=200)


def test_the_name_of_the_inventory_is_visible() -> None:
    silent = [SeenHost(name, problem=UNREACHABLE(host=name, cause="timed out")) for name in "ab"]
    text = printed(*silent, inventory="i\x1b]0;x\x07\u202e\nGF000.py", width=200)
    assert r"Next: gpufleet doctor i\x1b]0;x\x07\u202e\nGF000.py --limit a" in text
