"""The inventories that read other systems: the groups of an answer of each, as recorded.

The answers have the shape of those of the programs, with names and numbers of our own.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from source_fakes import ROOT, NetBox, error_of, load, names, recorded

from gpufleet.node.settings import settings_problems
from gpufleet.verify.inventory import load_targets

EXPECTED = yaml.safe_load(Path(__file__).with_name("expected.yaml").read_text())


@pytest.mark.parametrize("source", EXPECTED)
def test_a_recorded_answer_becomes_groups(source: str, netbox: NetBox) -> None:
    found = load(source)
    assert {name: names(group) for name, group in found.items()} == EXPECTED[source]["groups"]
    pairs = [pair for group in found.values() if isinstance(group, tuple) for pair in group[0]]
    assert dict(pairs) == EXPECTED[source]["hosts"]


def test_pyinfra_loads_it_with_settings_that_are_taken(netbox: NetBox) -> None:
    targets = load_targets(str(ROOT / "inventories/netbox.py"))
    hosts = EXPECTED["netbox"]["hosts"]
    assert {target.name for target in targets} == set(hosts)
    for target in targets:
        assert settings_problems(target.groups, target.data) == []
        assert hosts[target.name].items() <= target.data.items()


def test_the_environment_says_how_hosts_are_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    assert load("azure")["gpu_nodes"][1] == {}
    monkeypatch.setenv("GPUFLEET_SSH_USER", "admin")
    monkeypatch.setenv("GPUFLEET_SSH_KEY", "~/.ssh/fleet")
    monkeypatch.setenv("GPUFLEET_KUBECONFIG", "lab.kubeconfig")
    found = load("azure")
    login = {"ssh_user": "admin", "_sudo": True, "ssh_key": "~/.ssh/fleet"}
    assert (found["gpu_nodes"][1], found["control_plane"][1]) == (login, login)
    assert found["gpu_nodes"][1] is not found["control_plane"][1]  # pyinfra adds group_data
    assert found["gpu_cluster"] == (["@local"], {"cluster_kubeconfig": "lab.kubeconfig"})


@pytest.mark.parametrize("profile", ["", "--help"])
def test_maas_needs_a_profile(profile: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAAS_PROFILE", profile)
    assert "set MAAS_PROFILE" in error_of("maas")


def test_a_command_prints_the_error_without_a_traceback(programs: Path) -> None:
    (programs / "az").unlink()
    words = [str(Path(sys.executable).with_name("gpufleet")), "status", "inventories/azure.py"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    expected = "GF701 Cannot load inventory inventories/azure.py: az vm list: cannot start az "
    assert done.stderr.startswith(expected)
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("gres", "gpus", "model"),
    [
        ("gpu:3090:8(S:0-1)", 8, "3090"),
        ("gpu:2080:2,gpu:a40:2", 4, "2080"),
        ("gpu:8(S:0-1)", 8, None),
        ("gpu:nvidia_a100_3g:2", None, "nvidia_a100_3g"),
        ("gpu:3g.40gb:2", None, "3g.40gb"),
    ],
)
def test_slurm_types_of_digits_and_parts_of_a_gpu(
    gres: str, gpus: int | None, model: str | None, programs: Path
) -> None:
    answer = recorded("scontrol")
    answer["nodes"] = [{**answer["nodes"][0], "gres": gres}]
    (programs / "scontrol.json").write_text(json.dumps(answer))
    (programs / "scontrol").write_text(f"#!/bin/sh\ncat {programs}/scontrol.json\n")
    [(_, data)] = load("slurm")["gpu_nodes"][0]
    assert (data.get("node_gpus"), data.get("model")) == (gpus, model)


def test_terraform_reads_tags_that_the_provider_adds(programs: Path) -> None:
    state = recorded("terraform")
    rows = state["values"]["root_module"]["resources"]
    aws = next(row for row in rows if row["values"].get("tags", {}).get("Name") == "train-01")
    values = {**aws["values"], "tags": {"Name": "train-01"}, "tags_all": aws["values"]["tags"]}
    google = {"type": "google_compute_instance", "mode": "managed", "values": {
        "name": "lab-9", "network_interface": [{"network_ip": "10.30.0.9"}], "labels": {},
        "effective_labels": {"gpufleet": "gpu-nodes"}, "current_status": "RUNNING",
    }}  # fmt: skip
    state["values"]["root_module"] = {"resources": [{**aws, "values": values}, google]}
    (programs / "terraform.json").write_text(json.dumps(state))
    (programs / "terraform").write_text(f"#!/bin/sh\ncat {programs}/terraform.json\n")
    found = load("terraform")
    assert names(found["gpu_nodes"]) == ["train-01", "lab-9"]
    assert dict(found["gpu_nodes"][0])["train-01"]["node_gpus"] == 8
    assert found["tag_team_vision"] == ["train-01"]
