"""The tools of the tests themselves: order of files, selected cases, mutants."""

from __future__ import annotations

import ast
import os
import resource
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests import warm
from tests.mutation import __main__ as mutation
from tests.mutation.mutate import marked, mutants
from tests.scheduling import CLUSTER, HOSTS, LONG, OF_HOSTS, ends, preference
from tests.selection import some

ROOT = Path(__file__).resolve().parents[2]


def test_no_test_module_imports_another() -> None:
    """What several modules need is in a module `*_setup`, `conftest` or tests/fakes."""
    shipped = "tests.post_deploy"  # the checks are the product
    found = [
        f"{path.relative_to(ROOT)}: {node.module}"
        for path in sorted((ROOT / "tests").rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom)
        and node.module
        and node.module.rpartition(".")[2].startswith("test_")
        and not node.module.startswith(shipped)
    ]
    assert found == []


def test_long_files_exist() -> None:
    assert [name for name in LONG if not (ROOT / name).exists()] == []


def test_a_worker_prefers_its_kind_then_long_files_and_waits_for_programs() -> None:
    files = [LONG[0], "tests/cluster/test_a.py", "tests/hosts/test_sandbox.py", "tests/unit/a.py"]
    ready = sorted(files, key=lambda file: preference(file, CLUSTER, building=False))
    assert ready[:2] == files[:2]
    assert sorted(files, key=lambda file: preference(file, HOSTS, building=False))[0] == files[2]
    building = sorted(files, key=lambda file: preference(file, CLUSTER, building=True))
    assert building[2:] == files[:2]
    files.append(OF_HOSTS[0])
    assert sorted(files, key=lambda file: preference(file, HOSTS, building=True))[0] == files[-1]
    assert sorted(files, key=lambda file: preference(file, CLUSTER, building=True))[-1] == files[-1]


def test_clusters_of_hosts_are_left_to_three_workers() -> None:
    left = list(OF_HOSTS)
    assert ends(left, CLUSTER)
    assert not ends(left, HOSTS)
    assert not ends(left, "tests/unit/")
    assert not ends([*left, "tests/hosts/test_checks.py"], CLUSTER)


def test_some_parameters_are_extended_and_a_wrong_name_is_an_error() -> None:
    kept, extended = some(["a", "b"], ["a"])
    assert kept == "a"
    assert [mark.name for mark in extended.marks] == ["extended"]
    with pytest.raises(AssertionError, match="none of the parameters"):
        some(["a"], ["c"])


CODE = '''\
LIMIT = 3


def judge(value: int, *, strict: bool = False) -> str | None:
    """Says é."""
    if value > LIMIT and not strict:
        note(value + 1)
        return "é" if value in (4, 5) else None
    return None
'''
CHANGES = {
    ("value > LIMIT", "(value <= LIMIT)"),
    ("not strict", "bool(strict)"),
    ("value > LIMIT and not strict", "((value > LIMIT) or (not strict))"),
    ("note(value + 1)", "pass"),
    ("value + 1", "(value - 1)"),
    ("value in (4, 5)", "(value not in (4, 5))"),
    ("1", "2"), ("4", "5"), ("5", "6"),
    ('return "é" if value in (4, 5) else None', "return None"),
    ("value > LIMIT and not strict", "(not (value > LIMIT and not strict))"),
}  # fmt: skip


def test_mutants_of_a_function() -> None:
    found = list(mutants("a.py", CODE))
    assert {(one.old, one.new) for one in found} == CHANGES
    for one in found:
        changed = one.applied(CODE)
        ast.parse(changed)
        assert changed != CODE
        assert "LIMIT = 3" in changed, "data outside of functions stays"
        assert one.function == 6


def test_a_mutant_that_changes_nothing_is_none() -> None:
    found = list(mutants("a.py", "def pairs(a):\n    return zip(a, a, strict=True)\n"))
    assert [one.new for one in found] == ["return None"]


def test_a_marked_function_reports_itself() -> None:
    lines = marked(CODE, {6: 7}).splitlines()
    assert lines[5] == '    __import__("mutant_reached").reached(7)'
    ast.parse("\n".join(lines))


def test_a_warm_pyinfra_is_like_a_cold_one(tmp_path: Path) -> None:
    """Arguments, folder, environment, output and exit status equal those of a new process."""
    (tmp_path / "deploy.py").write_text("")
    text = "import os\nprint(os.getcwd(), os.environ['MINE'])\nhosts = []\n"
    (tmp_path / "inventory.py").write_text(text)
    command = [str(Path(sys.executable).with_name("pyinfra")), "inventory.py", "deploy.py"]
    for _ in range(2):
        printed = tmp_path / "printed"
        with printed.open("wb") as file:
            run = warm.begin(command, tmp_path, {**os.environ, "MINE": "mine"}, file.fileno())
        status = run.wait()
        assert f"{tmp_path} mine" in printed.read_text()
        assert status == 1, "there are no hosts"
    read, write = os.pipe()
    run = warm.begin([command[0], "--version"], tmp_path, os.environ, write)
    os.close(write)
    assert os.getsid(run.pid) == run.pid
    with open(read) as output:
        assert output.read().startswith("pyinfra: v")
    assert run.wait() == 0


def test_a_warm_pyinfra_that_is_killed_says_so(tmp_path: Path) -> None:
    (tmp_path / "inventory.py").write_text("import signal\nsignal.pause()\n")
    (tmp_path / "deploy.py").write_text("")
    command = [str(Path(sys.executable).with_name("pyinfra")), "inventory.py", "deploy.py"]
    with (tmp_path / "printed").open("wb") as file:
        run = warm.begin(command, tmp_path, os.environ, file.fileno())
    os.killpg(run.pid, signal.SIGKILL)
    assert run.wait() == -signal.SIGKILL


def test_no_two_test_files_share_a_name() -> None:
    """pytest confuses two files with one name in folders that are not packages.

    tests/post_deploy is left out, because `gpufleet verify` runs it separately.
    """
    files = [
        file for file in (ROOT / "tests").glob("**/test_*.py") if "post_deploy" not in file.parts
    ]
    names = Counter(file.name for file in files)
    assert [name for name, count in names.items() if count > 1] == []


def test_a_test_that_lets_no_file_grow_reaches_mutants_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GPUFLEET_MUTANTS", str(tmp_path))
    monkeypatch.setenv("GPUFLEET_TEST", "")  # restored at the end: it is set below
    names: dict[str, Any] = {}
    exec(mutation.REACHED, names)
    names["pytest_runtest_logstart"]("tests/unit/test_x.py::test_y", None)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, limits[1]))
    try:
        names["reached"](7)
        assert resource.getrlimit(resource.RLIMIT_FSIZE) == (0, limits[1])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert (tmp_path / "7").read_text() == "tests/unit/test_x.py::test_y\n"


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> mutation.Copy:
    """A copy of the repository: thousands of files."""
    return mutation.Copy(tmp_path_factory.mktemp("copy"))


@pytest.mark.parametrize(
    ("status", "first", "wrong", "killer"),
    [
        (0, "", "", ""),
        (1, "tests/unit/a.py::b", "", "tests/unit/a.py::b"),
        (124, "", "", "exit status 124"),
        (0, "", "mypy: a.py:1: error: x", "mypy: a.py:1: error: x"),
    ],
)
def test_a_mutant_is_killed_by_any_run_that_does_not_pass(
    status: int,
    first: str,
    wrong: str,
    killer: str,
    copy: mutation.Copy,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (mutant, *_) = mutants(
        "gpufleet/core/secrets.py", (ROOT / "gpufleet/core/secrets.py").read_text()
    )
    monkeypatch.setattr(copy, "tests_of", lambda mutant: (["tests/unit/a.py::b"], []))
    monkeypatch.setattr(copy, "pytest", lambda *words: (status, first))
    monkeypatch.setattr(copy, "wrong_type", lambda: wrong)
    assert mutation.judge(copy, mutant).killer == killer
    assert (copy.root / mutant.path).read_text() == (ROOT / mutant.path).read_text()


@pytest.mark.parametrize(
    ("status", "said", "wrong"),
    [
        (0, "", ""),
        (1, "a.py:1: note: y\na.py:1: error: x\n", "mypy: a.py:1: error: x"),
        (2, "a.py:3: error: Source file found twice\n", None),
    ],
)
def test_what_mypy_finds_in_a_mutant(
    status: int,
    said: str,
    wrong: str | None,
    copy: mutation.Copy,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    done = subprocess.CompletedProcess([], status, said, "")
    monkeypatch.setattr(subprocess, "run", lambda *words, **options: done)
    if wrong is None:  # mypy itself failed
        with pytest.raises(SystemExit):
            copy.wrong_type()
    else:
        assert copy.wrong_type() == wrong


def test_more_mutants_than_there_are_are_all_of_them() -> None:
    files = ["gpufleet/core/secrets.py", "gpufleet/packages/apt_sources.py"]
    every = [one for name in files for one in mutants(name, (ROOT / name).read_text())]
    chosen = mutation.choose(files, 10**6, seed=1)
    assert len(chosen) == len(every)
    assert all(one in every for one in chosen)
    few = mutation.choose(files, len(every) - 1, seed=1)
    assert len(few) == len(every) - 1
    assert all(few.count(one) == 1 for one in few)


def test_a_path_that_no_file_has_ends_at_once() -> None:
    done = CliRunner().invoke(mutation.main, ["--only", "nothing-here"])
    assert (done.exit_code, "nothing-here" in done.output) == (2, True)
