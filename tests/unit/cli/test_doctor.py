"""What `gpufleet doctor` says of hosts, from captured facts."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from gpufleet.cli.doctor import describe, show
from gpufleet.core.findings import Finding
from gpufleet.facts.parse import parse_node_facts
from gpufleet.host.facts import _parse
from gpufleet.host.gather import Gathered
from gpufleet.node.catalog import load_catalog
from gpufleet.run.findings import UNREACHABLE
from tests.unit.hosts import record_of

CAPTURES = Path(__file__).parents[1] / "facts" / "captures"


def gathered(name: str) -> Gathered:
    lines = (CAPTURES / f"{name}.txt").read_text("utf-8").splitlines()
    return Gathered("gpu-07", {}, parse_node_facts(lines))


def test_a_host_with_a_driver() -> None:
    parts = describe(gathered("ubuntu2204-kubelet-handwritten"), load_catalog())
    assert parts["GPUs"] == ["H100 SXM5 80GB at 0000:17:00.0"]
    assert (parts["module loaded"], parts["library"]) == ("580.95.05", "580.95.05")
    assert parts["module on disk"] == "580.95.05 (open)"
    assert "libnvidia-compute-580 580.95.05-0ubuntu1 (held)" in parts["packages"]
    assert "python3 (4711)" in parts["processes on GPUs"]
    assert parts["Kubernetes"] == "kubelet, 1 GPU pods"
    assert parts["metrics collected by"] == [
        "dcgm-exporter (process 4711, of a pod of Kubernetes)",
        "DCGM's host engine (process 4712, of nvidia-dcgm.service)",
    ]
    assert {finding["code"] for finding in parts["findings"]}
    assert json.loads(json.dumps(parts)) == parts


def test_no_secret_of_a_command_line_is_shown() -> None:
    parts = describe(gathered("k3s-handwritten"), load_catalog())
    assert "s3cret" not in json.dumps(parts)
    assert parts["runtimes"] == ["containerd 1.7.23 (k3s-agent.service, running, 7 containers)"]


def test_a_host_that_did_not_answer() -> None:
    problem = UNREACHABLE(host="gpu-07", cause="timed out")
    parts = describe(Gathered("gpu-07", {}, None, problem), load_catalog())
    (finding,) = parts["findings"]
    assert finding["code"] == "GF005"
    assert "--limit gpu-07" in finding["remedy"]


def test_an_inventory_that_is_not_there_or_names_no_host(tmp_path: Path) -> None:
    (tmp_path / "empty.py").write_text("gpu_nodes = []\n")
    for name, code in (("none.py", "GF003"), ("empty.py", "GF701")):
        done = subprocess.run(
            [Path(sys.executable).with_name("gpufleet"), "doctor", name],
            cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60,
        )  # fmt: skip
        assert (done.returncode, f"{code} blocker: " in done.stderr) == (2, True), done.stderr


def test_an_answer_that_cannot_be_read_names_the_host() -> None:
    found = _parse("gpu-07", ["nonsense"])
    assert isinstance(found, Finding)
    assert found.code == "GF502"
    assert "`ssh gpu-07 true`" in found.remedy
    assert "--limit gpu-07" in found.remedy


def test_settings_that_are_wrong_are_reported() -> None:
    host = gathered("el7-handwritten")
    parts = describe(Gathered(host.name, {"driver_brunch": "580"}, host.facts), load_catalog())
    assert any("driver_brunch" in finding["message"] for finding in parts["findings"])
    assert parts["library"] is None


def test_a_damaged_record_is_a_finding() -> None:
    host = gathered("el7-handwritten")
    assert host.facts
    facts = replace(host.facts, provenance=record_of(driver={"version": 580}))
    (finding,) = describe(Gathered(host.name, {}, facts), load_catalog())["findings"]
    assert finding["code"] == "GF557"
    assert "driver.version" in finding["message"]


@pytest.mark.parametrize("name", ["el7-handwritten", "ubuntu2204-kubelet-handwritten"])
def test_text_has_every_topic_and_finding(name: str) -> None:
    parts = describe(gathered(name), load_catalog())
    console = Console(record=True, width=200)
    show(console, "gpu-07", parts)
    text = console.export_text()
    assert text.startswith("gpu-07\n")
    for word in [*(set(parts) - {"findings"}), *(finding["code"] for finding in parts["findings"])]:
        assert word in text
