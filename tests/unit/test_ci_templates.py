"""The GitHub action and the GitLab template: their scripts run as a runner runs them.

No machine answers at the address of the hosts, so each cluster fails at its first phase. The tests
check the arguments that the scripts pass on and the files that they leave behind.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
NOBODY = {"ssh_port": 1, "ssh_strict_host_key_checking": "no"}
HOSTS = json.dumps(
    [
        {"name": "cp-1", "address": "127.0.0.1", "groups": ["control_plane"], "data": NOBODY},
        {"name": "gpu-1", "address": "127.0.0.1", "groups": ["gpu_nodes"], "data": NOBODY},
    ]
)
Environment = dict[str, str]


@pytest.fixture
def environment(tmp_path: Path) -> Environment:
    """The environment of a runner with gpufleet installed."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return {"PATH": path, "HOME": str(tmp_path), "CI_PROJECT_DIR": str(tmp_path)}


def run(script: str, environment: Environment, folder: Path) -> subprocess.CompletedProcess[str]:
    words = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script]
    return subprocess.run(
        words, env=environment, cwd=folder, capture_output=True, text=True, check=False, timeout=900
    )


class TestGitHub:
    @pytest.fixture
    def action(self) -> dict[str, Any]:
        found: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text())
        return found

    def steps(
        self, action: dict[str, Any], environment: Environment, folder: Path, **given: str
    ) -> tuple[int, str]:
        """Run the steps in order until one fails. Return the last status and all output."""
        inputs = {name: str(each["default"]) for name, each in action["inputs"].items()} | given
        values = {f"inputs.{name}": value for name, value in inputs.items()}
        values |= {"github.action_path": str(ROOT), "runner.temp": str(folder)}

        def filled(text: str) -> str:
            return re.sub(r"\$\{\{ ([\w.-]+) \}\}", lambda found: values[found.group(1)], text)

        output = ""
        for step in action["runs"]["steps"]:
            own = {name: filled(value) for name, value in step["env"].items()}
            outputs = {"GITHUB_OUTPUT": str(folder / "outputs"), "RUNNER_TEMP": str(folder)}
            done = run(filled(step["run"]), {**environment, **outputs, **own}, folder)
            output += done.stdout + done.stderr
            if done.returncode:
                return done.returncode, output
        return 0, output

    def test_a_failed_creation_leaves_its_reports(
        self, action: dict[str, Any], environment: Environment, tmp_path: Path
    ) -> None:
        status, output = self.steps(action, environment, tmp_path, hosts=HOSTS)
        assert status == 1, output
        outputs = dict(
            line.split("=", 1) for line in (tmp_path / "outputs").read_text().splitlines()
        )
        assert set(outputs) == set(action["outputs"])
        suite = ElementTree.parse(outputs["junit"]).getroot()[0]
        phases = ["Preflight", "Hosts", "Nodes", "GPU stack", "Checks"]
        assert [case.get("name") for case in suite] == phases
        assert suite.get("failures") == "1"
        assert outputs["kubeconfig"] == f"{tmp_path}/gpufleet/kubeconfig"

    @pytest.mark.extended
    def test_destroy_goes_to_every_host(
        self, action: dict[str, Any], environment: Environment, tmp_path: Path
    ) -> None:
        status, output = self.steps(action, environment, tmp_path, hosts=HOSTS, command="destroy")
        assert status == 1, output
        report = json.loads((tmp_path / "gpufleet/destroyed.json").read_text())
        hosts = report["phases"][0]["report"]["hosts"]
        assert {name: host["status"] for name, host in hosts.items()} == {
            "cp-1": "not reached", "gpu-1": "not reached",
        }  # fmt: skip

    @pytest.mark.parametrize("given", [{}, {"hosts": HOSTS, "command": "recreate"}], ids=str)
    def test_wrong_inputs(
        self, action: dict[str, Any], environment: Environment, tmp_path: Path,
        given: dict[str, str],
    ) -> None:  # fmt: skip
        assert self.steps(action, environment, tmp_path, **given)[0] == 2


class TestGitLab:
    def test_the_clean_up_may_take_longer_than_gitlabs_default(self) -> None:
        """GitLab ends `after_script` after five minutes."""
        job = yaml.safe_load((ROOT / "ci/gitlab.yml").read_text())[".gpufleet-cluster"]
        assert job["variables"]["RUNNER_AFTER_SCRIPT_TIMEOUT"] == "20m"

    @pytest.mark.extended
    def test_the_job_cleans_up_after_a_failure(
        self, environment: Environment, tmp_path: Path
    ) -> None:
        job = yaml.safe_load((ROOT / "ci/gitlab.yml").read_text())[".gpufleet-cluster"]
        own = {**environment, "GPUFLEET_HOSTS_JSON": HOSTS}
        for name, value in {**job["variables"], "GPUFLEET_FOLDER": str(ROOT)}.items():
            own[name] = value.replace("$CI_PROJECT_DIR", str(tmp_path))
        before = run("\n".join(job["before_script"]), own, tmp_path)
        assert before.returncode == 1, before.stdout + before.stderr
        for path in (*job["artifacts"]["paths"], job["artifacts"]["reports"]["junit"]):
            assert (tmp_path / path).is_file()
        after = run("\n".join(job["after_script"]), own, tmp_path)
        assert after.returncode == 1, after.stdout + after.stderr
        assert (tmp_path / "gpufleet/destroyed.json").is_file()
        assert own["KUBECONFIG"] == f"{tmp_path}/gpufleet/kubeconfig"
