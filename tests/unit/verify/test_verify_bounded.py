"""A host with endless output, or one that does not finish, fails only its own checks."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from fake_host import FakeHost
from verify_command import answer, command, fake_ssh

from gpufleet.verify.checks import CheckFailed
from gpufleet.verify.findings.hosts import OUTPUT_LIMIT
from gpufleet.verify.probe import Output, parse_sections

OWN = """\
def test_endless(host):
    host.run("without-end")

def test_short(host):
    assert host.run("uname -r").rc == 0
"""


def test_a_host_without_an_end_does_not_stop_the_others(tmp_path: Path) -> None:
    fake_ssh(tmp_path)
    answer(tmp_path, "good", loaded="580.95.05")
    (tmp_path / "fleet.py").write_text('gpu_nodes = ["endless", "good"]\n')
    (tmp_path / "checks").mkdir()
    (tmp_path / "checks/test_site.py").write_text(OWN)
    done = command("fleet.py", "--json", "report.json", folder=tmp_path)
    assert done.returncode == 1, done.stdout + done.stderr
    hosts = json.loads((tmp_path / "report.json").read_text())["hosts"]
    failed = {
        host: {name: check["code"] for name, check in found["checks"].items() if check["code"]}
        for host, found in hosts.items()
    }
    assert failed == {"endless": {"reachable": "GF704"}, "good": {"site.endless": "GF704"}}
    assert "more than 16 MiB" in hosts["endless"]["checks"]["reachable"]["message"]
    assert hosts["endless"]["checks"]["site.short"]["message"].endswith("(GF704)")
    assert hosts["good"]["passed"] >= 30


def test_runtimes_without_an_end_are_one_failed_check(
    fake_host: FakeHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, script = [], fake_host.script

    def endless(name: str, *arguments: str) -> dict[str, Output]:
        asked.append(name)
        if name == "runtimes.sh":
            raise CheckFailed("gpu-1", OUTPUT_LIMIT(None, why="it printed more than 16 MiB"))
        return script(name, *arguments)

    monkeypatch.setattr(fake_host, "script", endless)
    assert list(fake_host.failures().values()) == ["GF704"]
    assert asked == ["host.sh", "runtimes.sh"]


def test_beginnings_without_an_end_are_read_once() -> None:
    begin = time.monotonic()
    text = "\n@@1 begin a\n" * 400_000 + "\n@@1 end 0\n" + "\n@@1 begin b\nhi\n\n@@1 end 3\n"
    assert parse_sections(text, "@@1")["b"] == Output(3, "hi\n")
    assert time.monotonic() - begin < 20
