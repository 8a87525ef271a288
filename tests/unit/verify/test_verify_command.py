"""`gpufleet verify` as a user runs it, with a fake `ssh`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import testinfra
from click.testing import CliRunner
from fake_host import healthy
from verify_command import answer, command, fake_ssh

from gpufleet import __version__
from gpufleet.cli.verify import Refusal, verify
from gpufleet.verify.probe import HostProbe

ROOT = Path(__file__).parents[3]


@dataclass
class Run:
    """One run of the command, with its output and reports."""

    status: int
    output: str
    whole: dict[str, Any]  # the JSON
    cases: list[ET.Element]
    connections: list[str]
    modes: set[int]  # of the reports

    @property
    def report(self) -> dict[str, Any]:
        return dict(self.whole["hosts"])


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A good host, one with an old module loaded, and one that is down."""
    folder = tmp_path_factory.mktemp("verify")
    fake_ssh(folder)
    (folder / "fleet.py").write_text('gpu_nodes = ["good", "old", "down"]\nother = ["login"]\n')
    answer(folder, "good", loaded="580.95.05")
    answer(folder, "old", loaded="550.163.01")
    files = ("--json", "report.json", "--junit", "report.xml")
    done = command("fleet.py", *files, folder=folder)
    return Run(
        done.returncode,
        done.stdout + done.stderr,
        json.loads((folder / "report.json").read_text()),
        list(ET.parse(folder / "report.xml").getroot().iter("testcase")),
        (folder / "log").read_text().split(),
        {(folder / f"report.{kind}").stat().st_mode & 0o777 for kind in ("json", "xml")},
    )


def test_status_is_1_when_a_check_failed(run: Run) -> None:
    assert run.status == 1, run.output


def test_the_reports_are_private(run: Run) -> None:
    assert run.modes == {0o600}


def test_only_the_group_is_checked_in_its_order(run: Run) -> None:
    assert list(run.report) == ["good", "old", "down"]


def test_good_host_has_no_failure(run: Run) -> None:
    assert run.report["good"]["failed"] == 0, run.output
    assert run.report["good"]["passed"] >= 30


def test_unreachable_host_is_one_failed_check(run: Run) -> None:
    checks = run.report["down"]["checks"]
    failed = {name: check["code"] for name, check in checks.items() if check["code"]}
    assert failed == {"reachable": "GF710"}
    assert "Connection refused" in checks["reachable"]["message"]


def test_failure_has_code_and_message_without_a_traceback(run: Run) -> None:
    check = run.report["old"]["checks"]["module_loaded"]
    assert (check["outcome"], check["code"]) == ("failed", "GF730")
    assert check["message"] in run.output
    assert "Traceback" not in run.output
    assert "node.expect" not in run.output


def test_table_closes_the_output(run: Run) -> None:
    table = run.output[run.output.index("Checks per host") :]
    assert "module_loaded (GF730)" in table
    assert " on down: the host is not reachable (GF710)" in table


def test_json_says_what_was_checked_and_when(run: Run) -> None:
    head = {name: run.whole[name] for name in ("schema", "gpufleet", "inventory")}
    assert head == {"schema": 1, "gpufleet": __version__, "inventory": "fleet.py"}
    assert run.whole["started"] <= run.whole["finished"]
    for name, total in run.whole["totals"].items():
        assert total == sum(host[name] for host in run.report.values()), name


def test_junit_names_host_check_and_code(run: Run) -> None:
    properties = [{p.get("name"): p.get("value") for p in c.iter("property")} for c in run.cases]
    assert {"host": "old", "check": "module_loaded", "code": "GF730"} in properties
    assert {case.get("classname") for case in run.cases} == {"good", "old", "down"}


def test_good_host_is_asked_in_few_commands(run: Run) -> None:
    # Two scripts, two look-ups of the runtimes' binary, a container of docker and of containerd.
    assert run.connections.count("good") == 6
    assert run.connections.count("down") == 1


def test_wrong_limit_matches_nothing(tmp_path: Path) -> None:
    (tmp_path / "fleet.py").write_text('gpu_nodes = ["a"]\n')
    done = command("fleet.py", "--limit", "nobody", folder=tmp_path)
    assert done.returncode == 4
    assert "GF702 --limit nobody" in done.stderr


def test_a_host_that_is_not_reached_fails_whatever_checks_are_chosen(tmp_path: Path) -> None:
    fake_ssh(tmp_path)
    answer(tmp_path, "good", loaded="580.95.05")
    (tmp_path / "fleet.py").write_text('gpu_nodes = ["good", "down"]\n')
    done = command("fleet.py", "-k", "module_loaded", folder=tmp_path)
    assert done.returncode == 1, done.stdout
    assert "GF710 down" in done.stdout
    assert "2 passed" in done.stdout  # of the good one: reachable and module_loaded
    good = command("fleet.py", "-k", "module_loaded", "--limit", "good", folder=tmp_path)
    assert good.returncode == 0, good.stdout
    assert good.stdout.lstrip().startswith("Checks per host"), "results alone, no letter per check"
    assert "Checks per host" not in good.stderr


def test_options_of_another_test_suite_choose_no_checks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PYTEST_ADDOPTS of a CI job left out every check, and -n started workers."""
    fake_ssh(tmp_path)
    answer(tmp_path, "good", loaded="580.95.05")
    (tmp_path / "fleet.py").write_text('gpu_nodes = ["good"]\n')
    monkeypatch.setenv("PYTEST_ADDOPTS", "-m public --no-such-option")
    monkeypatch.setenv("PYTEST_PLUGINS", "no_such_plugin")
    done = command("fleet.py", folder=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


def test_installed_plugins_of_pytest_are_not_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    """pytest-ansible has options of the same names, which ends pytest."""
    found: list[str | None] = []

    def main(*arguments: object, **how: object) -> pytest.ExitCode:
        found.append(os.environ.get("PYTEST_DISABLE_PLUGIN_AUTOLOAD"))
        return pytest.ExitCode.OK

    monkeypatch.setattr(pytest, "main", main)
    for name in ("PYTEST_ADDOPTS", "PYTEST_PLUGINS", "PYTEST_DISABLE_PLUGIN_AUTOLOAD"):
        monkeypatch.setenv(name, "")  # restored after the test
    assert CliRunner().invoke(verify, ["fleet.py"]).exit_code == 0
    assert found == ["1"]


def test_the_same_statuses_as_the_other_commands(tmp_path: Path) -> None:
    (tmp_path / "fleet.py").write_text('gpu_nodes = ["a"]\n')
    missing = command("nosuch.py", folder=tmp_path)
    assert (missing.returncode, "GF701" in missing.stderr) == (2, True)
    none = command("fleet.py", "-k", "no_such_check", folder=tmp_path)
    assert (none.returncode, "GF703 -k no_such_check matches no check" in none.stderr) == (4, True)
    assert command("fleet.py", "--nosuch", folder=tmp_path).returncode == 2


def test_a_report_that_cannot_be_written_is_wrong_usage(tmp_path: Path) -> None:
    (tmp_path / "fleet.py").write_text('gpu_nodes = ["a"]\n')
    for place in (".", "none/report.json", "/proc/report.json"):
        done = command("fleet.py", "--json", place, folder=tmp_path)
        assert done.returncode == 2
        assert "GF001" in done.stderr
        assert "Traceback" not in done.stderr


def test_a_junit_file_goes_where_a_report_may_go(tmp_path: Path) -> None:
    (tmp_path / "fleet.py").write_text('gpu_nodes = ["a"]\n')
    (tmp_path / "notes.xml").write_text("<notes/>\n")
    for place in ("none/new/x.xml", "notes.xml"):
        done = command("fleet.py", "--junit", place, folder=tmp_path)
        assert done.returncode == 2, place
        assert "GF001" in done.stderr
    assert not (tmp_path / "none").exists()
    assert (tmp_path / "notes.xml").read_text() == "<notes/>\n"


def test_a_host_that_breaks_a_check_does_not_stop_the_others(tmp_path: Path) -> None:
    fake_ssh(tmp_path)
    for name in ("good", "odd"):
        answer(tmp_path, name, loaded="580.95.05")
    odd = {"toolkit_runtimes": [["docker"]]}  # no run takes it, and no set either
    (tmp_path / "fleet.py").write_text(f'gpu_nodes = [("odd", {odd}), "good"]\n')
    done = command("fleet.py", "--json", "report.json", folder=tmp_path)
    assert done.returncode == 1, done.stdout + done.stderr
    hosts = json.loads((tmp_path / "report.json").read_text())["hosts"]
    assert (hosts["good"]["failed"], hosts["good"]["passed"] >= 30) == (0, True)
    assert hosts["odd"]["failed"] > 0
    assert "INTERNALERROR" not in done.stdout + done.stderr


def test_an_interruption_is_status_130() -> None:
    assert Refusal().status(pytest.ExitCode.INTERRUPTED) == 130


@pytest.mark.parametrize("name", ["host.sh", "runtimes.sh"])
def test_scripts_run_in_a_plain_shell(name: str) -> None:
    probe = HostProbe(testinfra.get_host("local://"))
    sections = probe.script(name, "/none/daemon.json", "/none/config.toml", "/none/crio.conf")
    fake_host = healthy()
    known = {"host.sh": fake_host.sections, "runtimes.sh": fake_host.runtimes}[name]
    assert {n for n in known if not n.startswith("cdi:")} <= set(sections)
    if name == "host.sh":
        assert sections["kernel"].text.strip() == os.uname().release


def test_checks_share_nothing_with_what_installs() -> None:
    kube = ("kube.kubeconfig", "kube.private_folder", "kube.prometheus")
    shared = ("verify", "core", "run.report_file", *kube, "helm.chart_")
    code = (
        "import sys, glob, runpy\n"
        "for path in sorted(glob.glob('tests/post_deploy/*.py')): runpy.run_path(path)\n"
        "print(*[m for m in sys.modules if m.startswith(('gpufleet.', 'roles', 'deploys'))])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    loaded = done.stdout.split()
    assert "gpufleet.verify.node" in loaded
    parts = [m.removeprefix("gpufleet.") for m in loaded if m.count(".") > 1]
    reported = [m for m in parts if "findings" not in m.split(".") and not m.startswith(shared)]
    assert reported == []
