"""The scripts of a run, by a shell on a folder: whose the packages are, and who may use them."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

import gpufleet
from gpufleet.host.shell import script

Run = Callable[..., "subprocess.CompletedProcess[str]"]
OTHER = "GF071 other"


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Run a script; programs in `fakes` come before those of the machine."""
    (tmp_path / "fakes").mkdir()

    def carry_out(name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = script(f"upgrade/{name}", *arguments).get_raw_value()
        command = command.replace("\nPATH=", f"\nPATH={tmp_path / 'fakes'}:", 1)
        command = command.replace("timeout -k 10 ", "timeout -k 1 ")
        return subprocess.run(
            ["sh", "-c", command], capture_output=True, text=True, check=False, timeout=30
        )

    return carry_out


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of a run with one package of version 1."""
    place = tmp_path / "upgrade"
    (place / "packages").mkdir(parents=True)
    (place / "packages/driver.rpm").write_text("package")
    done = subprocess.run(
        ["sha256sum", "./driver.rpm"], cwd=place / "packages", capture_output=True, check=True
    )
    (place / "sums").write_bytes(done.stdout)
    (place / "from").write_text("1\n")
    (place / "names").write_text("driver\n")
    return place


def owned(folder: Path, state: str, run: str) -> str:
    (folder / "state").write_text(f"{state}\n{run}\n")
    return str(folder)


def owner(folder: Path) -> list[str]:
    return (folder / "state").read_text().splitlines()


def fake(tmp_path: Path, name: str, text: str) -> None:
    program = tmp_path / "fakes" / name
    program.write_text(f"#!/bin/sh\n{text}\n")
    program.chmod(0o755)


CALLS = {
    "note": ("b", "changing", "GF059 missing", OTHER),
    "take": ("b", "c", "1", "GF055 lacking", "GF056 damaged", OTHER),
    "restore": ("b", "1", "GF055 lacking", "GF056 damaged", OTHER, "GF057 failed", "dnf", "9"),
    "validate": ("b", "1", "", "5", "GF054 differs", OTHER),
    "keep": ("b", "1", "GF051 not kept", OTHER, "GF076 full", "dnf", "5", "driver=1-1"),
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("state", ["prepared", "changing", "restoring"])
def test_what_another_run_has_is_refused(run: Run, folder: Path, name: str, state: str) -> None:
    done = run(name, owned(folder, state, "a"), *CALLS[name])
    assert done.returncode == 1
    assert done.stderr == f"GF071 other\n  | run: a\n  | state: {state}\n"
    assert owner(folder) == [state, "a"]
    assert (folder / "packages/driver.rpm").read_text() == "package"


@pytest.mark.parametrize("name", ["note", "restore", "validate"])
def test_what_belongs_to_no_run_is_not_changed(run: Run, folder: Path, name: str) -> None:
    done = run(name, str(folder), *CALLS[name])
    assert done.returncode == 1
    assert "run: none" in done.stderr


@pytest.mark.parametrize(("name", "code"), [("note", "GF059"), ("take", "GF055"),
                                            ("restore", "GF055")])  # fmt: skip
def test_a_missing_folder_is_named(run: Run, tmp_path: Path, name: str, code: str) -> None:
    done = run(name, str(tmp_path / "none"), *CALLS[name])
    assert done.returncode == 1
    assert done.stderr.startswith(code)


def test_a_state_is_noted_for_its_run(run: Run, folder: Path) -> None:
    assert run("note", owned(folder, "prepared", "b"), *CALLS["note"]).returncode == 0
    assert owner(folder) == ["changing", "b"]


@pytest.mark.parametrize("state", ["prepared", "changing", "restoring", "changed"])
def test_what_a_run_has_taken_stays_its_own(run: Run, folder: Path, state: str) -> None:
    assert run("take", owned(folder, state, "b"), *CALLS["take"]).returncode == 0
    assert owner(folder) == [state, "b"]


def test_a_roll_back_takes_packages_over_and_gives_them_back(run: Run, folder: Path) -> None:
    assert run("take", owned(folder, "changed", "c"), *CALLS["take"]).returncode == 0
    assert owner(folder) == ["prepared", "b"]
    assert run("release", str(folder), "b", "c").returncode == 0
    assert owner(folder) == ["changed", "c"]


@pytest.mark.parametrize("state", ["prepared", "changing", "restoring", "released"])
def test_what_the_origin_has_not_changed_is_not_taken(run: Run, folder: Path, state: str) -> None:
    done = run("take", owned(folder, state, "c"), *CALLS["take"])
    assert done.returncode == 1
    assert done.stderr == f"GF071 other\n  | run: c\n  | state: {state}\n"
    assert owner(folder) == [state, "c"]


def test_damaged_packages_are_not_taken(run: Run, folder: Path) -> None:
    (folder / "packages/driver.rpm").write_text("other")
    done = run("take", owned(folder, "changed", "c"), *CALLS["take"])
    assert done.stderr.startswith("GF056")
    (folder / "from").write_text("2\n")
    assert run("take", str(folder), *CALLS["take"]).stderr.startswith("GF055")
    assert owner(folder) == ["changed", "c"]


@pytest.mark.parametrize(
    ("state", "of", "after"),
    [("prepared", "b", "released"), ("changing", "b", "changing"), ("changed", "b", "changed"),
     ("prepared", "a", "prepared")],
)  # fmt: skip
def test_only_what_a_run_has_prepared_is_released(
    run: Run, folder: Path, state: str, of: str, after: str
) -> None:
    assert run("release", owned(folder, state, of), "b", "").returncode == 0
    assert owner(folder) == [after, of]


def test_nothing_is_released_where_nothing_is(run: Run, tmp_path: Path) -> None:
    assert run("release", str(tmp_path / "none"), "b", "").returncode == 0
    assert not (tmp_path / "none").exists()


RPM = """
case "$*" in
    '-qp --qf '*) echo driver=1-1 ;;
    '-q --qf '*) if [ -e DONE ]; then echo driver=1-1; else echo driver=2-1; fi ;;
    '-q gone') exit 1 ;;
    '-q '*) ;;
    *) echo "$*" >>ASKED; case $1 in FAILS) echo "error: $1"; exit 1 ;; esac; : >DONE ;;
esac
"""


def rpm(tmp_path: Path, fails: str = "-none") -> Path:
    """A fake of rpm, and the file of the changes that were asked of it."""
    asked = tmp_path / "asked"
    text = RPM.replace("DONE", str(tmp_path / "done")).replace("ASKED", str(asked))
    fake(tmp_path, "rpm", text.replace("FAILS", fails))
    return asked


@pytest.mark.parametrize(
    ("installed", "calls"),
    [
        (("driver",), ["-U --oldpackage --replacepkgs F"]),
        (
            ("driver", "extra", "gone"),
            ["-U --oldpackage --replacepkgs --nodeps --replacefiles F", "-e --nodeps extra"],
        ),
    ],
)
def test_rpm_packages_are_there_before_others_go(
    run: Run, folder: Path, tmp_path: Path, installed: tuple[str, ...], calls: list[str]
) -> None:
    asked = rpm(tmp_path)
    done = run("restore", owned(folder, "changing", "b"), *CALLS["restore"], *installed)
    assert done.returncode == 0, done.stderr
    file = f"{folder}/packages/driver.rpm"
    assert asked.read_text().splitlines() == [call.replace("F", file) for call in calls]
    assert owner(folder) == ["restoring", "b"]


@pytest.mark.parametrize("fails", ["-U", "-e"])
def test_a_transaction_that_fails_is_reported(
    run: Run, folder: Path, tmp_path: Path, fails: str
) -> None:
    asked = rpm(tmp_path, fails)
    done = run("restore", owned(folder, "changing", "b"), *CALLS["restore"], "extra")
    assert done.returncode == 1
    assert done.stderr == f"GF057 failed\n  | error: {fails}\n"
    assert len(asked.read_text().splitlines()) == 1 + (fails == "-e")


def test_packages_that_are_not_there_afterwards_are_named(
    run: Run, folder: Path, tmp_path: Path
) -> None:
    fake(tmp_path, "rpm", "case \"$*\" in '-qp '*) echo driver=1-1 ;; esac")
    done = run("restore", owned(folder, "changing", "b"), *CALLS["restore"])
    assert done.stderr == "GF057 failed\n  | not installed: driver=1-1\n"


KEPT_RPM = """
case "$*" in
    '-q --qf %{SIZE}'*) echo 104857600 ;;
    '-qp --qf '*) [ -e ./driver.rpm ] && echo driver=1-1 ;;
esac
"""


@pytest.mark.parametrize(("free", "fits"), [(168_000, True), (167_000, False)])
def test_packages_that_do_not_fit_are_not_fetched(
    run: Run, tmp_path: Path, free: int, fits: bool
) -> None:
    """100 MiB, and 64 that stay free."""
    folder = tmp_path / "upgrade"
    fake(tmp_path, "rpm", KEPT_RPM)
    fake(tmp_path, "df", f"printf 'Filesystem\\nx 1 1 {free} 1%% /\\n'")
    fake(tmp_path, "dnf", ": >driver.rpm")
    for name in ("nvidia-smi", "systemctl", "dmesg"):
        fake(tmp_path, name, "exit 1")
    done = run("keep", str(folder), *CALLS["keep"])
    assert done.returncode == (not fits), done.stderr
    assert (folder / "packages/driver.rpm").exists() == fits
    assert not (tmp_path / "upgrade.new").exists()
    if not fits:
        assert done.stderr == "GF076 full\n  | free: 163 MiB\n  | needed: 165 MiB\n"


@pytest.mark.parametrize("name", ["health", "validate", "keep"])
def test_an_nvidia_smi_that_ignores_sigterm_holds_no_run(
    run: Run, folder: Path, tmp_path: Path, name: str
) -> None:
    fake(tmp_path, "nvidia-smi", "trap '' TERM; exec sleep 60")
    for program in ("systemctl", "dmesg", "rpm"):
        fake(tmp_path, program, "exit 1")
    calls = {
        "health": ("changed", "b", "1"),
        "validate": ("changing", "b", "b", "1", "", "1", "GF054 differs", OTHER),
        "keep": ("changed", "a", "b", "1", "GF051 not kept", OTHER, "GF076 full", "dnf", "1"),
    }
    before, of, *arguments = calls[name]
    done = run(name, owned(folder, before, of), *arguments)
    health = (folder / "health").read_text() if name == "keep" else ""
    assert ("GF054" if name == "validate" else "gpus 0") in done.stdout + done.stderr + health


def test_every_time_limit_of_a_script_ends_what_ignores_sigterm() -> None:
    scripts = sorted(Path(gpufleet.__file__).parent.rglob("*.sh"))
    assert scripts
    for path in scripts:
        for line in path.read_text().splitlines():
            code = line.partition("#")[0]
            assert not re.search(r"(?<![\w-])timeout (?!-k )", code), f"{path}: {line}"
