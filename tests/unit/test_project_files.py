"""Files for a hosting service or a release are validated, because no test can run them."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest
import yaml

from gpufleet.cli import catalog_check, main

ROOT = Path(__file__).resolve().parents[2]
SCHEMAS = {
    "vendor.github-workflows": ".github/workflows/*.yml",
    "custom.github-workflows-require-timeout": ".github/workflows/*.yml",
    "vendor.github-issue-forms": ".github/ISSUE_TEMPLATE/[!c]*.yml",
    "vendor.github-issue-config": ".github/ISSUE_TEMPLATE/config.yml",
    "vendor.github-actions": "action.yml",
    "vendor.gitlab-ci": "ci/gitlab.yml",
}


def check(*words: str) -> subprocess.CompletedProcess[str]:
    program = [sys.executable, "-m", "check_jsonschema", *words]
    return subprocess.run(program, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("schema", SCHEMAS)
def test_a_file_has_the_form_that_its_reader_takes(schema: str) -> None:
    files = sorted(map(str, ROOT.glob(SCHEMAS[schema])))
    assert files
    done = check("--builtin-schema", schema, *files)
    assert done.returncode == 0, done.stdout + done.stderr


def test_an_invalid_workflow_is_noticed(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.yml"
    wrong.write_text((ROOT / ".github/workflows/test.yml").read_text().replace("steps:", "step:"))
    assert check("--builtin-schema", "vendor.github-workflows", str(wrong)).returncode == 1


def test_workflows_run_targets_that_exist() -> None:
    targets = (ROOT / "Makefile").read_text()
    ran = []
    for path in sorted((ROOT / ".github/workflows").glob("*.yml")):
        for job in yaml.safe_load(path.read_text())["jobs"].values():
            for line in (step.get("run", "") for step in job["steps"]):
                _, found, target = line.partition("make ")
                ran += [target.split()[0]] if found else []
    assert {"setup", "lint", "test", "release-check", "docs-site"} <= set(ran)
    assert [target for target in ran if f"\n{target}: " not in targets] == []


def test_the_catalog_is_checked_each_week() -> None:
    workflow = yaml.safe_load((ROOT / ".github/workflows/catalog.yml").read_text())
    assert "schedule" in workflow[True]  # YAML 1.1 reads `on` as a boolean
    steps = workflow["jobs"]["check"]["steps"]
    (line,) = (step["run"] for step in steps if "catalog check" in step.get("run", ""))
    words = shlex.split(line.partition("gpufleet ")[2].partition(" >")[0])
    context = click.Context(main)
    assert main.resolve_command(context, words)[0] == "catalog"
    check = catalog_check.check.make_context("check", words[2:])
    assert check.params["patch"] == "build/catalog.patch"
    assert steps[-1]["if"] == "always()"
    assert workflow["permissions"] == {"contents": "read"}


def release_check(folder: Path, tag: str) -> subprocess.CompletedProcess[str]:
    (folder / "build").mkdir(exist_ok=True)
    words = [folder / "scripts/release_check.sh", sys.executable, tag]
    return subprocess.run(words, capture_output=True, text=True, check=False)


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A copy of the checkout's files, with uncommitted changes and new files."""
    listed = ["git", "-C", ROOT, "ls-files", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listed, capture_output=True, text=True, check=True).stdout.split("\n")
    for name in filter(None, names):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def commit(folder: Path) -> None:
    author = ["-c", "user.name=test", "-c", "user.email=test@example.com"]
    for words in (["init", "-q"], ["add", "-A"], [*author, "commit", "-qm", "All"]):
        subprocess.run(["git", "-C", folder, *words], check=True)


@pytest.mark.parametrize(
    ("tag", "dated", "committed", "said"),
    [
        ("v9.9.9", True, True, "the tag is v9.9.9, gpufleet/__init__.py has 0.1.0."),
        ("v0.1.0", False, True, "CHANGELOG.md has no section '## 0.1.0 (YYYY-MM-DD)'."),
        ("v0.1.0", True, False, "the working tree has changes"),
    ],
)
def test_a_release_that_must_not_be_is_refused(
    clone: Path, tag: str, dated: bool, committed: bool, said: str
) -> None:
    if dated:
        date_changelog(clone)
    commit(clone)
    if not committed:
        (clone / "README.md").write_text("")
    done = release_check(clone, tag)
    assert (done.returncode, said in done.stderr) == (1, True), done.stderr


@pytest.mark.extended
def test_a_release_is_built_and_tried(clone: Path) -> None:
    date_changelog(clone)
    commit(clone)
    done = release_check(clone, "v0.1.0")
    assert done.returncode == 0, done.stdout + done.stderr
    assert {path.suffix for path in (clone / "dist").iterdir()} == {".whl", ".gz"}


def date_changelog(folder: Path) -> None:
    path = folder / "CHANGELOG.md"
    path.write_text(path.read_text().replace("## 0.1.0 (unreleased)", "## 0.1.0 (2026-12-01)"))
