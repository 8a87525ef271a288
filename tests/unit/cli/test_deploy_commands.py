"""`gpufleet plan | apply | remove`: which deploys run, and with which arguments of pyinfra."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from gpufleet.cli import deploy, main, preview
from gpufleet.cli.deploy import deploy_file, pyinfra_arguments
from gpufleet.cli.init import DEPLOY_TEXT
from gpufleet.core.paths import shipped_path
from gpufleet.verify.inventory import Target

NODE = Target("gpu-1", ("gpu_nodes",), {})
OTHER = Target("login", ("others",), {})
CLUSTER = Target("@local", ("gpu_cluster",), {})
BOTH = Target("one", ("gpu_nodes", "gpu_cluster"), {})


@pytest.mark.parametrize(
    ("targets", "limit", "deploys"),
    [
        ([NODE], [], ["gpu_node"]),
        ([OTHER], [], ["gpu_node"]),
        ([CLUSTER], [], ["gpu_cluster"]),
        ([CLUSTER, NODE], [], ["gpu_node", "gpu_cluster"]),
        ([BOTH], [], ["gpu_node", "gpu_cluster"]),
        ([NODE, CLUSTER], ["gpu_cluster"], ["gpu_cluster"]),
        ([NODE, CLUSTER], ["gpu-*"], ["gpu_node"]),
        ([NODE, CLUSTER], ["gpu_nodes", "@local"], ["gpu_node", "gpu_cluster"]),
    ],
)
def test_the_inventory_decides_which_deploys_run(
    targets: list[Target], limit: list[str], deploys: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deploy, "load_targets", lambda inventory: targets)
    words = [word for pattern in limit for word in ("--limit", pattern)]
    done, (became,) = ended(monkeypatch, "apply", "inv.py", "--yes", *words)
    assert done.exit_code == 0, done.output
    assert [Path(word).stem for word in became[-len(deploys) :]] == deploys
    assert Path(became[-len(deploys) - 1]).name == "inv.py"


def test_files_of_the_working_directory_count_else_those_of_gpufleet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert deploy_file("gpu_node") == shipped_path("deploys") / "gpu_node.py"
    config = ["--config", str(shipped_path("config.py"))]
    words = pyinfra_arguments("inv.py", [Path("x.py")], [], [])
    assert words == ["-y", *config, "inv.py", "x.py"]
    (tmp_path / "config.py").touch()
    (tmp_path / "deploys").mkdir()
    (tmp_path / "deploys/gpu_node.py").touch()
    assert deploy_file("gpu_node") == Path("deploys/gpu_node.py")
    assert deploy_file("remove") == shipped_path("deploys") / "remove.py"
    words = pyinfra_arguments("inv.py", [Path("x.py")], ["a", "b"], ["--serial"])
    assert words == ["-y", "--limit", "a", "--limit", "b", "--serial", "inv.py", "x.py"]
    words = pyinfra_arguments("inv.py", [Path("x.py")], [], ["--dry"], lists=True)
    assert words == ["--dry", "inv.py", "x.py"], "pyinfra lists changes only without -y"


def ended(monkeypatch: pytest.MonkeyPatch, *words: str) -> tuple[Result, list[list[str]]]:
    """The result of a command, and the programs that it passed to os.execv."""
    became: list[list[str]] = []
    monkeypatch.setattr(os, "execv", lambda path, words: became.append([path, *words]))
    return CliRunner().invoke(main, words), became


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every inventory exists and has no hosts."""
    monkeypatch.setattr(deploy, "load_targets", lambda inventory: [])


@pytest.mark.usefixtures("loaded")
def test_the_command_becomes_pyinfra(monkeypatch: pytest.MonkeyPatch) -> None:
    done, (became,) = ended(monkeypatch, "remove", "inv.py", "--yes", "--", "--data", "a=secret")
    assert done.exit_code == 0, done.output
    assert became[:2] == [sys.executable, sys.executable]
    assert became[became.index("-c") + 1].endswith(deploy.UNTIL_STARTED + deploy.START)
    words = ["-y", "--data", "a=secret", "inv.py", "deploys/remove.py"]
    assert [
        word
        for word in became[became.index("-c") + 2 :]
        if word not in ("--config", str(shipped_path("config.py")))
    ] == [
        *words[:-1],
        str(deploy_file("remove")),
    ]
    assert "secret" not in done.output


def test_ctrl_c_before_pyinfra_has_started_ends_in_one_line() -> None:
    words = deploy.python_code(f"{deploy.UNTIL_STARTED}signal.raise_signal(signal.SIGINT)")
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "Interrupted.\n")


@pytest.mark.usefixtures("loaded")
def test_a_preview_asks_nothing_and_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    done, (became,) = ended(monkeypatch, "plan", "inv.py")
    assert done.exit_code == 0
    assert Path(became[-1]).name == "preflight.py"


@pytest.mark.parametrize("own", ["from pyinfra.operations import server\nserver.shell('a')\n", ""])
def test_a_plan_names_operations_of_ones_own(
    own: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(deploy, "load_targets", lambda inventory: [NODE])
    monkeypatch.chdir(tmp_path)
    (tmp_path / "deploys").mkdir()
    text = f"from gpufleet.run.include import include\ninclude('gpu_node')\n{own}"
    (tmp_path / "deploys/gpu_node.py").write_text(text)
    done, _ = ended(monkeypatch, "plan", "inv.py")
    assert ("`gpufleet apply inv.py -- --dry` shows them" in done.output) is bool(own)


@pytest.mark.usefixtures("loaded")
def test_an_inventory_that_begins_with_a_dash_is_no_option(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    done, (became,) = ended(monkeypatch, "plan", "--", "-inv.py")
    assert done.exit_code == 0
    assert became[-2] == "./-inv.py"


def test_without_a_terminal_changes_need_yes(monkeypatch: pytest.MonkeyPatch) -> None:
    done, became = ended(monkeypatch, "remove", "inv.py")
    assert (done.exit_code, became) == (2, [])
    assert "Add --yes" in done.output


@pytest.mark.parametrize("verb", [["plan"], ["apply", "--yes"], ["remove", "--yes"]])
def test_each_limit_has_to_match(monkeypatch: pytest.MonkeyPatch, verb: list[str]) -> None:
    monkeypatch.setattr(deploy, "load_targets", lambda inventory: [NODE])
    limits = ["--limit", NODE.name, "--limit", "gpu-0x"]
    done, became = ended(monkeypatch, *verb, "inv.py", *limits)
    assert (done.exit_code, became) == (4, [])
    assert "GF702 --limit gpu-0x matches no host" in done.stderr
    assert not done.stdout


def test_a_folder_is_no_inventory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    done, became = ended(monkeypatch, "plan", str(tmp_path))
    assert (done.exit_code, became) == (2, [])
    assert done.stderr.startswith("GF701")
    assert not done.stdout


def test_a_second_inventory_is_wrong_usage(monkeypatch: pytest.MonkeyPatch) -> None:
    done, became = ended(monkeypatch, "plan", "inv.py", "other.py")
    assert (done.exit_code, became) == (2, [])
    assert "other.py" in done.output


@pytest.mark.parametrize("verb", [["plan"], ["apply", "--yes"], ["remove", "--yes"]])
def test_an_inventory_that_cannot_be_loaded_is_wrong_usage(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, verb: list[str]
) -> None:
    done, became = ended(monkeypatch, *verb, "nosuch.py")
    assert (done.exit_code, became) == (2, [])
    assert "GF701" in done.output
    broken = tmp_path / "inv.py"
    broken.write_text("raise RuntimeError('no route')")
    done, became = ended(monkeypatch, *verb, str(broken))
    assert (done.exit_code, became) == (2, [])
    assert "GF701" in done.output
    assert "no route" in done.output
    assert "Traceback" not in done.output


PREVIEWS = [
    ("apply", ["deploys/preflight.py"], ["deploys/gpu_node.py"]),
    ("remove", ["--dry", "deploys/remove.py"], ["deploys/remove.py"]),
]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The previews that run before the question, as on a terminal."""
    previews: list[list[str]] = []
    monkeypatch.setattr(deploy, "load_targets", lambda inventory: [NODE])
    monkeypatch.setattr(deploy, "require_confirmation", lambda yes, options: None)
    monkeypatch.setattr(
        preview, "run_in_front", lambda words, env, output: previews.append([*words]) or 0
    )
    return previews


def answered(
    monkeypatch: pytest.MonkeyPatch, answer: str, *words: str
) -> tuple[Result, list[list[str]]]:
    became: list[list[str]] = []
    monkeypatch.setattr(os, "execv", lambda path, words: became.append([path, *words]))
    return CliRunner().invoke(main, words, input=answer), became


@pytest.mark.claim(
    "`apply` shows the plan before it asks; any answer but yes changes nothing.",
    level=1,
)
@pytest.mark.parametrize(("verb", "preview", "run"), PREVIEWS)
def test_the_plan_is_shown_before_the_question(
    monkeypatch: pytest.MonkeyPatch,
    asked: list[list[str]],
    verb: str,
    preview: list[str],
    run: list[str],
) -> None:
    words = [verb, "inv.py", "--limit", "gpu-1", "--", "--serial"]
    done, (became,) = answered(monkeypatch, "y\n", *words)
    assert done.exit_code == 0, done.output
    (shown,) = asked
    assert [word for word in shown if word in preview] == preview
    assert [word for word in became if word in run] == run
    for command in (shown, became):
        at = command.index("--limit")
        assert command[at : at + 3] == ["--limit", "gpu-1", "--serial"]
        assert "-y" in command, "pyinfra asks no second time"
    assert "--dry" not in became


@pytest.mark.parametrize("what", ["driver", "toolkit"])
def test_a_permission_reaches_the_preview_and_the_run(
    monkeypatch: pytest.MonkeyPatch, asked: list[list[str]], what: str
) -> None:
    words = ["apply", "inv.py", f"--allow-{what}-change", "--", "--data", "a=b"]
    done, (became,) = answered(monkeypatch, "y\n", *words)
    assert done.exit_code == 0, done.output
    for command in (*asked, became):
        at = command.index("a=b")
        assert command[at + 1 : at + 3] == ["--data", f"{what}_allow_change=True"]


def planning(monkeypatch: pytest.MonkeyPatch, *steps: int) -> None:
    """The preview plans `steps[n]` steps on host n."""

    def runs(words: list[str], environment: dict[str, str], output: object) -> int:
        hosts = {f"gpu-{at}": {"changed": each} for at, each in enumerate(steps)}
        Path(environment["GPUFLEET_REPORT"]).write_text(json.dumps({"hosts": hosts}))
        return 0

    monkeypatch.setattr(preview, "run_in_front", runs)


@pytest.mark.usefixtures("asked")
@pytest.mark.parametrize("verb", ["apply", "remove"])
def test_nothing_is_asked_where_nothing_is_planned(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, verb: str
) -> None:
    monkeypatch.chdir(tmp_path)
    planning(monkeypatch, 0, 0)
    done, became = answered(monkeypatch, "", verb, "inv.py")
    assert (done.exit_code, len(became)) == (0, 1)


@pytest.mark.usefixtures("asked")
@pytest.mark.parametrize(
    ("more", "runs"), [("", True), ("\nserver.packages(packages=['htop'])\n", False)]
)
def test_operations_of_ones_own_are_asked_for_although_no_plan_has_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, more: str, runs: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "deploys").mkdir()
    (tmp_path / "deploys/gpu_node.py").write_text(
        DEPLOY_TEXT.format(title="x", name="gpu_node") + more
    )
    planning(monkeypatch, 0)
    done, became = answered(monkeypatch, "n\n", "apply", "inv.py")
    assert (done.exit_code == 0, bool(became)) == (runs, runs)


@pytest.mark.usefixtures("asked")
@pytest.mark.parametrize(
    ("steps", "answer", "runs"),
    [((1,), "y\n", True), ((1, 1, 0), "y\n", False), ((1, 1, 0), "3\n", False),
     ((1, 1, 0), "2\n", True), ((1, 1, 0), "\n", False)],
)  # fmt: skip
def test_the_number_of_hosts_is_typed_to_remove_from_several(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, steps: tuple[int, ...], answer: str, runs: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    planning(monkeypatch, *steps)
    done, became = answered(monkeypatch, answer, "remove", "inv.py")
    assert (done.exit_code == 0, bool(became)) == (runs, runs)


@pytest.mark.parametrize("answer", ["n\n", "\n", ""])
def test_another_answer_than_yes_changes_nothing(
    monkeypatch: pytest.MonkeyPatch, asked: list[list[str]], answer: str
) -> None:
    done, became = answered(monkeypatch, answer, "apply", "inv.py")
    assert (done.exit_code, became, len(asked)) == (1, [], 1)


@pytest.mark.parametrize(("status", "runs"), [(0, 1), (1, 1), (2, 0), (4, 0), (130, 0)])
def test_a_plan_that_could_not_be_made_is_the_end(
    monkeypatch: pytest.MonkeyPatch, asked: list[list[str]], status: int, runs: int
) -> None:
    monkeypatch.setattr(preview, "run_in_front", lambda words, env, output: status)
    done, became = answered(monkeypatch, "y\n", "apply", "inv.py")
    assert (done.exit_code, len(became)) == (0 if runs else status, runs)


def test_a_dry_run_and_yes_ask_nothing(
    monkeypatch: pytest.MonkeyPatch, asked: list[list[str]]
) -> None:
    for words in (["apply", "inv.py", "--", "--dry"], ["apply", "inv.py", "--yes"]):
        done, became = answered(monkeypatch, "", *words)
        assert (done.exit_code, len(became), asked) == (0, 1, [])


def test_the_name_of_a_preview_is_no_preview(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deploy, "load_targets", lambda inventory: [NODE])
    done, became = ended(monkeypatch, "apply", "inv.py", "--", "--exclude", "--dry")
    assert (done.exit_code, became) == (2, [])
    assert "Add --yes" in done.stderr


def test_a_dry_run_without_a_terminal_needs_no_yes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deploy, "load_targets", lambda inventory: [NODE])
    done, became = ended(monkeypatch, "apply", "inv.py", "--", "--dry")
    assert (done.exit_code, len(became)) == (0, 1)


def test_a_misspelt_command_is_guessed(monkeypatch: pytest.MonkeyPatch) -> None:
    done, _ = ended(monkeypatch, "applyy", "inv.py")
    assert done.exit_code == 2
    assert "No such command 'applyy'. Did you mean 'apply'?" in done.stderr
    done, _ = ended(monkeypatch, "--", "--plan")
    assert (done.exit_code, "No such option '--plan'" in done.stderr) == (2, True)
    done, _ = ended(monkeypatch, "zzz")
    assert "Did you mean" not in done.stderr


@pytest.mark.parametrize("module", ["gpufleet.cli.deploy", "gpufleet.run.part"])
def test_only_the_process_that_runs_pyinfra_loads_it(module: str) -> None:
    """pyinfra makes gevent replace parts of the standard library, even in a worker of Dask."""
    code = f"import sys, {module}; sys.exit('pyinfra' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
