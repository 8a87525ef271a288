"""`gpufleet status` and `doctor` on real hosts: drift, a lost GPU, a silent host, one command."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from deploying import run_deploy
from examining import SILENT, run_gpufleet, write_inventory

import gpufleet
from gpufleet_sandbox import Host
from tests.hosts.conftest import HostFactory

pytestmark = [
    pytest.mark.hosts,
    pytest.mark.extended,
    pytest.mark.claim(
        "`status` sees drift before a run and none after it, with one connection and one "
        "command per host.",
        level=3,
    ),
]

SCHEMAS = Path(gpufleet.__file__).parent / "status"
ONE_COMMAND = "journalctl -o cat -t sudo -t sshd | grep -cE 'COMMAND=|Accepted publickey'"


class Fleet:
    """An inventory of sandbox hosts and of one that is not there."""

    def __init__(self, hosts: list[Host], folder: Path) -> None:
        self.inventory = write_inventory(folder, hosts, SILENT)

    def run(
        self, command: str, *options: str, group: str = "gpu_nodes"
    ) -> subprocess.CompletedProcess[str]:
        words = (command, self.inventory, "--limit", group, *options)
        return run_gpufleet(*words, columns=80)

    def json(self, command: str, schema: str, *options: str, group: str = "gpu_nodes") -> Any:
        done = self.run(command, "--json", *options, group=group)
        document = json.loads(done.stdout)
        jsonschema.validate(document, json.loads((SCHEMAS / schema).read_text()))
        return document["hosts"]


def asked(host: Host) -> int:
    """Connections of a host and commands that were run there as root so far."""
    return int(host.run(ONE_COMMAND, check=False).stdout or 0)


def test_the_fleet_in_one_table(bare_host: HostFactory, tmp_path: Path) -> None:
    hosts = [bare_host("ubuntu2204"), bare_host("debian12")]
    fleet = Fleet(hosts, tmp_path)

    bare = fleet.run("status", "--drift")
    assert bare.returncode == 2, bare.stdout + bare.stderr
    assert "2 hosts" in bare.stdout
    assert "GF715 warning" in bare.stdout
    assert max(map(len, bare.stdout.splitlines())) <= 80
    assert "\x1b" not in bare.stdout + bare.stderr
    assert bare.stderr == "Reading 2 hosts\n"

    done = run_deploy("gpu_node", hosts)
    assert done.returncode == 0, done.output
    before = [asked(host) for host in hosts]
    converged = fleet.run("status", "--drift")
    assert converged.returncode == 0, converged.stdout + converged.stderr
    assert "drift" not in converged.stdout
    for host, count in zip(hosts, before, strict=True):
        root = host.state.user == "root"
        assert asked(host) - count == (1 if root else 2), "one connection, one command"

    seen = fleet.json("status", "status.schema.json")
    assert seen["ubuntu2204"]["driver_loaded"] is True
    assert seen["ubuntu2204"]["driver"] == done.report["ubuntu2204"]["driver"]["after"]
    assert seen["ubuntu2204"]["gpus"][0]["count"] == 2
    assert [host["steps"] for host in seen.values()] == [[], []]

    page = tmp_path / "fleet.html"
    silent = fleet.run("status", "--drift", "--html", str(page), group="*")
    assert silent.returncode == 1, "what was not read is never without drift"
    assert "GF005 blocker gone" in silent.stdout
    assert page.stat().st_mode & 0o777 == 0o600
    text = page.read_text()
    assert "ubuntu2204" in text
    assert "http://" not in text.replace("http-equiv", "")

    with hosts[0].fault("gpu-lost"):
        lost = fleet.json("status", "status.schema.json")["ubuntu2204"]
        assert "gpu-fault" in lost["flags"]
        assert "GF725" in {each["code"] for each in lost["findings"]}
        deep = fleet.json("doctor", "doctor.schema.json", group="ubuntu2204")["ubuntu2204"]
        assert len(deep["missing_gpus"]) == 1
        shown = fleet.run("doctor", group="ubuntu2204")
        assert shown.returncode == 2
        assert deep["verdict"] == "CRITICAL"
        assert [cause["check"] for cause in deep["causes"]] == ["chain.gpus"]
        assert f"GPUs missing     at {deep['missing_gpus'][0]}" in shown.stdout
        assert fleet.run("status", "--fail-on", "gpu-fault").returncode == 1
        planned = fleet.run("plan", group="ubuntu2204")
        assert (planned.returncode, "GF725 blocker" in planned.stdout) == (1, True), planned.stdout
        applied = fleet.run("apply", "--yes", group="ubuntu2204")
        assert (applied.returncode, "GF725 blocker" in applied.stdout) == (1, True), applied.stdout
