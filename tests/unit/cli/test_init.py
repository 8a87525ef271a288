"""`gpufleet init`: the folder that it makes."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from gpufleet import __version__
from gpufleet.cli import main
from gpufleet.core.paths import shipped_path

pytestmark = pytest.mark.claim(
    "`gpufleet init` writes nothing outside its folder and refuses a folder that is not empty.",
    level=1,
)

ROOT = Path(__file__).parents[3]


def init(folder: Path | str) -> Result:
    return CliRunner().invoke(main, ["init", str(folder)])


def files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def test_it_writes_a_whole_repository_and_nothing_beside_it(tmp_path: Path) -> None:
    done = init(tmp_path / "new" / "fleet")
    assert done.exit_code == 0, done.output
    assert [path.name for path in tmp_path.iterdir()] == ["new"]
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["fleet"]
    found = files(tmp_path / "new" / "fleet")
    assert {f"deploys/{deploy.name}" for deploy in shipped_path("deploys").glob("*.py")} <= found
    assert {
        ".gitignore",
        "README.md",
        "checks/test_site.py",
        "ci/github-actions.yml",
        "config.py",
        "inventories/group_data/all.py",
        "inventories/prod.py",
        "requirements.txt",
    } <= found
    assert f"{len(found)} files" in done.output
    pinned = (tmp_path / "new/fleet/requirements.txt").read_text()
    assert pinned == f"gpufleet=={__version__}\n"


def test_its_python_files_compile_and_its_deploys_are_ours(tmp_path: Path) -> None:
    init(tmp_path)
    for path in tmp_path.rglob("*.py"):
        compile(path.read_text(), str(path), "exec")
    assert 'include("gpu_node")' in (tmp_path / "deploys/gpu_node.py").read_text()


def workflow() -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """The events of the sample of CI, and its jobs."""
    found = yaml.safe_load((shipped_path("templates") / "init/ci/github-actions.yml").read_text())
    return found[True], found["jobs"]  # YAML 1.1 reads `on` as true


def commands(job: dict[str, Any]) -> list[str]:
    return [step["run"] for step in job["steps"] if "run" in step]


def test_ci_runs_only_the_protected_branch_beside_the_key() -> None:
    events, jobs = workflow()
    assert set(events) == {"push", "pull_request", "schedule", "workflow_dispatch"}
    assert events["push"] == {"branches": ["main"]}
    ours = {name: job for name, job in jobs.items() if "self-hosted" in job["runs-on"]}
    assert set(ours) == {"plan", "verify", "apply"}
    for job in ours.values():
        assert "github.ref == 'refs/heads/main'" in job["if"].split(" && ")
        assert job["environment"]
    assert "github.event_name != 'pull_request'" in ours["plan"]["if"].split(" && ")
    assert "github.event_name == 'schedule'" in ours["verify"]["if"].split(" && ")
    assert "github.event_name == 'workflow_dispatch'" in ours["apply"]["if"].split(" && ")
    applying = [name for name, job in jobs.items() if "gpufleet apply" in " ".join(commands(job))]
    assert applying == ["apply"]
    assert ours["apply"]["environment"] != ours["plan"]["environment"]


def test_hosts_that_are_to_be_changed_keep_no_apply_out() -> None:
    """Hosts fail their checks until `apply` changes them. So `apply` needs only the plan."""
    _, jobs = workflow()
    assert jobs["apply"]["needs"] == "plan"
    assert not any("gpufleet verify" in line for line in commands(jobs["plan"]))
    applied, verified = commands(jobs["apply"])[-2:]
    assert "gpufleet apply" in applied
    assert "gpufleet verify" in verified


def test_ci_runs_nothing_of_a_pull_request() -> None:
    _, jobs = workflow()
    (job,) = (job for job in jobs.values() if "self-hosted" not in job["runs-on"])
    assert job["if"] == "github.event_name == 'pull_request'"
    assert commands(job) == ["python3 -m compileall -q config.py inventories deploys checks"]
    assert "secrets" not in str(job)


def test_ci_installs_from_one_index_alone() -> None:
    _, jobs = workflow()
    installs = [line for job in jobs.values() for line in commands(job) if "pip install" in line]
    assert installs
    assert all("--index-url" in line and "--extra-index-url" not in line for line in installs)


@pytest.mark.parametrize("name", ["notes.txt", ".git"])
def test_a_folder_that_is_not_empty_stays_as_it_is(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("mine")
    done = init(tmp_path)
    assert done.exit_code == 2
    assert "is not empty" in done.output
    assert "Name an empty folder" in done.output
    assert files(tmp_path) == {name}


def test_a_file_of_that_name_stays_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "fleet").write_text("mine")
    done = init(tmp_path / "fleet")
    assert done.exit_code == 1
    assert "Error: cannot write" in done.output
    assert "Delete" not in done.output
    assert (tmp_path / "fleet").read_text() == "mine"


@pytest.mark.parametrize("name", ["with blank's $x", "-dash"])
def test_the_line_to_type_next_is_quoted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(main, ["init", "--", name])
    [line] = [line for line in done.output.splitlines() if "cd " in line]
    typed = line.strip().partition(" && ")[0]
    shell = subprocess.run(["sh", "-c", f"{typed} && pwd"], capture_output=True, text=True)
    assert shell.stdout.strip() == str(tmp_path / name)


def test_a_name_that_cannot_be_printed_is_refused(tmp_path: Path) -> None:
    assert init(tmp_path / "a\x1b[2Jb").exit_code == 2
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("named", [True, False], ids=["opened", "flushed"])
def test_what_a_failed_init_leaves_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: bool
) -> None:
    write, written = Path.write_text, []

    def full(path: Path, text: str, **how: Any) -> int:
        if len(written) == 3:
            raise OSError(28, "No space left on device", *([str(path)] if named else []))
        written.append(path)
        return write(path, text, **how)

    folder = tmp_path / "fleet"
    monkeypatch.setattr(Path, "write_text", full)
    done = init(folder)
    assert done.exit_code == 1
    last = folder / "ci/github-actions.yml"
    assert f"Error: cannot write {last}: No space left on device\n" in done.stderr
    assert f"{folder} is incomplete. Delete it, then run again." in done.stderr
    monkeypatch.undo()
    shutil.rmtree(folder)
    assert init(folder).exit_code == 0


def test_the_reports_that_pages_write_are_ignored() -> None:
    """The reports have names of hosts, and the folder is a repository."""
    ignored = (shipped_path("templates") / "init/gitignore").read_text().splitlines()
    pages = "".join(path.read_text() for path in (ROOT / "docs/how-to").glob("*.md"))
    names = set(re.findall(r"(?:--(?:html|json|junit)|--csv >) ([a-z]+\.[a-z]+)", pages))
    assert {"fleet.html", "fleet.csv", "verify.xml"} <= names
    assert sorted(name for name in names if f"/{name}" not in ignored) == []
