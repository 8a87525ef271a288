"""The patch of `gpufleet catalog check --write`, applied to a copy that then tests itself."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from gpufleet.catalog.models import DataEdit
from gpufleet.catalog.patch import NoPlace, apply_edits
from gpufleet.cli import main
from tests.unit.catalog.live_mirror import LiveMirror, MakeKey, change_everything, served

ROOT = Path(__file__).resolve().parents[3]
CATALOG_TESTS = (
    "tests/unit/packages/test_catalog_data.py",
    "tests/unit/core/test_catalog_sources.py",
    "tests/unit/driver/test_catalog_driver.py",
    "tests/unit/driver/test_catalog_find.py",
    "tests/unit/helm/test_charts.py",
)
SHOWN = """
from gpufleet.helm.chart_choice import load_charts
from gpufleet.node.catalog import load_catalog
from gpufleet.status.support import load_runtimes
import gpufleet
known, (containerd,) = load_catalog(), load_runtimes().runtimes
print(gpufleet.__file__)
print(known.branch(580).newest, known.branch(580).versions[-1], known.branch(620).newest)
print(known.branch(625).newest, known.branch(625).kind, *known.branch(625).modules)
print(known.toolkit.newest, known.toolkit.versions[-1].version)
print(load_charts().kubernetes["1.38"], load_charts().kubernetes["1.36"])
print(containerd.minor_of("2.4.0").end_of_life, containerd.minor_of("2.2.0").end_of_life)
"""
PATCHED = """\
580.200.01 580.178.04 620.20.02
625.10.01 unknown open
1.21.0 1.21.0
2028-02-28 2027-07-28
2028-11-06 2026-12-31
"""


def run(*words: str, cwd: Path) -> str:
    environment = {**os.environ, "PYTHONPATH": f"{cwd}:{cwd}/sandbox"}
    done = subprocess.run(
        words, cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture
def patch(known_keys: str, mirror: LiveMirror, make_key: MakeKey, tmp_path: Path) -> Path:
    change_everything(mirror, make_key)
    mirror.write()
    file = tmp_path / "new.patch"
    with served(mirror.root) as url:
        words = ["catalog", "check", "--mirror", url, "--write", str(file)]
        result = CliRunner().invoke(main, words)
    assert result.exit_code == 2, result.output
    assert f"Wrote {file} with 8 differences" in result.output
    return file


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The files of the checkout, with uncommitted changes, as a repository of its own."""
    folder = tmp_path / "copy"
    listed = run("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", cwd=ROOT)
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes((ROOT / name).read_bytes())
    run("git", "init", "-q", cwd=folder)
    return folder


@pytest.mark.claim("A patch of gpufleet catalog check passes the catalog's own tests.", level=1)
def test_the_patched_copy_passes_its_catalog_tests(patch: Path, copy: Path) -> None:
    before = {path: path.read_text() for path in copy.glob("gpufleet/*/data/*.yaml")}
    run("git", "apply", str(patch), cwd=copy)
    file, _, shown = run(sys.executable, "-c", SHOWN, cwd=copy).partition("\n")
    assert file == f"{copy}/gpufleet/__init__.py"
    assert shown == PATCHED
    run(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *CATALOG_TESTS, cwd=copy)
    for path, text in before.items():
        kept = [line for line in text.splitlines() if line.lstrip().startswith("#")]
        assert [each for each in kept if each not in path.read_text().splitlines()] == []
    run("git", "apply", "--reverse", str(patch), cwd=copy)
    assert {path: path.read_text() for path in before} == before


def test_a_patch_has_no_key_and_no_chart(patch: Path) -> None:
    changed = {
        line.removeprefix("+++ b/gpufleet/")
        for line in patch.read_text().splitlines()
        if line.startswith("+++")
    }
    assert changed == {
        "driver/data/branches.yaml",
        "helm/data/charts.yaml",
        "status/data/runtime_support.yaml",
        "toolkit/data/toolkit.yaml",
    }
    assert "fingerprint" not in patch.read_text()


@pytest.mark.usefixtures("known_keys")
def test_nothing_to_write_leaves_no_file(mirror: LiveMirror, tmp_path: Path) -> None:
    mirror.write({"kubernetes"})
    file = tmp_path / "new.patch"
    with served(mirror.root) as url:
        words = ["--mirror", url, "--only", "kubernetes", "--write", str(file)]
        result = CliRunner().invoke(main, ["catalog", "check", *words])
    assert (result.exit_code, file.exists()) == (0, False)


A, B, END = ("name", "a"), ("name", "b"), "(read)\n\n"
TEXT = """\
# head
list:  # of all
  - {name: a, newest: 1.2.3, source: "https://a (read)"}  # one
  - name: b
    newest: ''
    # of b
    source: >-
      https://b
      (read)

# tail
other: [x, y]
"""


@pytest.mark.parametrize(
    ("edit", "old", "new"),
    [
        (("list", A, "newest", "set", "580.142"), "1.2.3,", '"580.142",'),
        (("list", A, "versions", "add", "1.2"), '(read)"}', '(read)", versions: ["1.2"]}'),
        (("list", A, "source", "append", "; more"), '(read)"', '(read); more"'),
        (("list", A, "newest", "keep", "versions"), '(read)"}', '(read)", versions: [1.2.3]}'),
        (("list", B, "newest", "keep", "versions"), "", ""),
        (("list", B, "newest", "set", "1.2.3"), "''", "1.2.3"),
        (("list", B, "versions", "add", "1.2.3"), END, "(read)\n    versions: [1.2.3]\n\n"),
        (("list", B, "source", "append", "; more"), END, "(read); more\n\n"),
        (("list", "add", {"name": "c"}), END, "(read)\n  - {name: c}\n\n"),
        (("other", "add", "z: {"), "y]", 'y, "z: {"]'),
    ],
)  # fmt: skip
def test_an_edit_changes_its_place_alone(edit: tuple[object, ...], old: str, new: str) -> None:
    *path, action, value = edit
    changed = apply_edits(TEXT, [DataEdit("x/y", tuple(path), value, action)])  # type: ignore[arg-type]
    assert changed == TEXT.replace(old, new, 1)
    yaml.safe_load(changed)


def test_a_place_that_is_not_in_the_file() -> None:
    edit = DataEdit("x/y", ("list", ("name", "z"), "newest"), "1")
    with pytest.raises(NoPlace):
        apply_edits(TEXT, [edit])


@pytest.mark.usefixtures("known_keys")
def test_a_patch_keeps_the_files_own_newest_version(
    own_folder: Path, mirror: LiveMirror, make_key: MakeKey, tmp_path: Path
) -> None:
    change_everything(mirror, make_key)
    mirror.write({"drivers"})
    (own_folder / "branches.yaml").write_text("branches: [{branch: 580, newest: 580.190.02}]")
    file = tmp_path / "a b.patch"
    with served(mirror.root) as url:
        words = ["--only", "drivers", "--mirror", url, "--write", str(file)]
        result = CliRunner().invoke(main, ["catalog", "check", *words])
    assert f"git apply '{file}'" in result.output
    added = [line for line in file.read_text().splitlines() if line.startswith("+ ")]
    assert ("+      - 580.178.04" in added, "+      - 580.190.02" in added) == (True, False)
