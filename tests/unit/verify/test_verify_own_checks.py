"""Checks of the user in the folder checks/, as `gpufleet verify` runs them."""

from __future__ import annotations

import json
import stat
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from verify_command import answer, command, fake_ssh

OWN = """\
import pytest

def test_kernel(node, host):
    assert node.name == "good"
    assert host.check_output("uname -r") == node.kernel

def test_space(host):
    assert host.check_output("uname -r") == "", "expected 1 TB in /scratch"

def test_fails(node):
    pytest.fail("not on this host")

def test_breaks(node):
    raise RuntimeError("a mistake in the check")
"""


@pytest.mark.claim("A user's own checks run with the shipped ones.", level=1)
def test_checks_of_the_working_directory_join_the_shipped_ones(tmp_path: Path) -> None:
    fake_ssh(tmp_path)
    answer(tmp_path, "good", loaded="580.95.05")
    (tmp_path / "fleet.py").write_text('gpu_nodes = ["good", "down"]\n')
    (tmp_path / "checks").mkdir()
    (tmp_path / "checks/test_host.py").write_text(OWN)  # a shipped file has the same name
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = --nosuch\n")
    files = ("--json", "report.json", "--junit", "report.xml")
    done = command("fleet.py", *files, folder=tmp_path)
    assert done.returncode == 1, done.stdout + done.stderr
    hosts = json.loads((tmp_path / "report.json").read_text())["hosts"]
    own = {name: check for name, check in hosts["good"]["checks"].items() if "." in name}
    assert {name: check["outcome"] for name, check in own.items()} == {
        "host.kernel": "passed",
        "host.space": "failed",
        "host.fails": "failed",
        "host.breaks": "error",
    }
    assert "expected 1 TB" in own["host.space"]["message"]
    assert hosts["good"]["passed"] > 30
    assert "host.space (failed)" in done.stdout
    assert "warning" not in done.stdout
    down = {name: check["outcome"] for name, check in hosts["down"]["checks"].items()}
    assert {down[name] for name in own} == {"skipped"}
    assert down["reachable"] == "failed"
    cases = ET.parse(tmp_path / "report.xml").getroot().iter("testcase")
    assert "test_space[good]" in {case.get("name") for case in cases}


WITHOUT_A_HOST = """\
import unittest
import pytest

def test_plain():
    pass

@pytest.mark.parametrize("number", [1, 2])
def test_number(number):
    assert number == 1

@pytest.fixture
def broken():
    raise RuntimeError("a mistake in the fixture")

def test_broken(broken):
    pass

class TestCase(unittest.TestCase):
    def test_method(self):
        pass
"""


def test_a_check_that_takes_no_host_runs_once(tmp_path: Path) -> None:
    fake_ssh(tmp_path)
    for name in ("good", "better"):
        answer(tmp_path, name, loaded="580.95.05")
    (tmp_path / "fleet.py").write_text('gpu_nodes = ["good", "better"]\n')
    (tmp_path / "checks").mkdir()
    (tmp_path / "checks/test_site.py").write_text(WITHOUT_A_HOST)
    (tmp_path / "checks/test_wrong.py").write_text("import no_such_module\n")
    files = ("--json", "report.json", "--junit", "report.xml")
    done = command("fleet.py", *files, folder=tmp_path)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "INTERNALERROR" not in done.stdout + done.stderr
    hosts = json.loads((tmp_path / "report.json").read_text())["hosts"]
    assert list(hosts) == ["good", "better", "(no host)"]
    own = {name: check["outcome"] for name, check in hosts["(no host)"]["checks"].items()}
    assert own == {
        "site.broken": "error",
        "site.method": "passed",
        "site.number[1]": "passed",
        "site.number[2]": "failed",
        "site.plain": "passed",
        "wrong": "error",
    }
    assert "no_such_module" in hosts["(no host)"]["checks"]["wrong"]["message"]
    for name in ("good", "better"):
        assert (hosts[name]["failed"], hosts[name]["passed"] >= 30) == (0, True)
    table = done.stdout[done.stdout.index("Checks per host") :]
    row = next(line for line in table.splitlines() if "(no host)" in line)
    assert row.split()[2:5] == ["3", "3", "0"]
    cases = ET.parse(tmp_path / "report.xml").getroot().iter("testcase")
    shown = [{p.get("name"): p.get("value") for p in case.iter("property")} for case in cases]
    assert {"host": "(no host)", "check": "site.plain"} in shown


LINKS = """\
import os

def test_links():
    for name in ("report.json", "report.xml"):
        os.symlink(os.path.abspath("target.txt"), name)
"""
STOPS = """\
def test_passes(): pass
def test_stops(): raise KeyboardInterrupt
"""


def test_reports_are_not_written_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "fleet.py").write_text('gpu_nodes = ["down"]\n')
    (tmp_path / "target.txt").write_text("of another user\n")
    (tmp_path / "checks").mkdir()
    (tmp_path / "checks/test_site.py").write_text(LINKS)
    fake_ssh(tmp_path)
    files = ("--json", "report.json", "--junit", "report.xml")
    done = command("fleet.py", "-k", "links", *files, folder=tmp_path)
    assert "1 passed" in done.stdout, done.stdout + done.stderr
    assert (tmp_path / "target.txt").read_text() == "of another user\n"
    for name in ("report.json", "report.xml"):
        found = (tmp_path / name).lstat()
        assert (stat.S_ISREG(found.st_mode), found.st_mode & 0o777) == (True, 0o600)


def test_an_interrupted_run_leaves_whole_reports(tmp_path: Path) -> None:
    (tmp_path / "fleet.py").write_text('gpu_nodes = ["down"]\n')
    (tmp_path / "checks").mkdir()
    (tmp_path / "checks/test_site.py").write_text(STOPS)
    fake_ssh(tmp_path)
    files = ("--json", "report.json", "--junit", "report.xml")
    done = command("fleet.py", "-k", "passes or stops", *files, folder=tmp_path)
    assert done.returncode == 130, done.stdout + done.stderr
    cases = ET.parse(tmp_path / "report.xml").getroot().iter("testcase")
    assert "test_passes" in {case.get("name") for case in cases}
    assert (
        "site.passes"
        in json.loads((tmp_path / "report.json").read_text())["hosts"]["(no host)"]["checks"]
    )
    assert {path.name for path in tmp_path.iterdir() if "report" in path.name} == {
        "report.json",
        "report.xml",
    }
