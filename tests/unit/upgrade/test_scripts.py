"""The scripts of a run, executed by a shell on a folder."""

from __future__ import annotations

import fcntl
import re
from pathlib import Path

import pytest

import gpufleet
from tests.unit.upgrade.scripts_setup import CALLS, Run, fake, rpm
from tests.unit.upgrade.scripts_setup import folder as folder  # a fixture
from tests.unit.upgrade.scripts_setup import run as run  # a fixture


@pytest.mark.parametrize(("name", "code"), [("note", "GF059"), ("take", "GF055"),
                                            ("restore", "GF055")])  # fmt: skip
def test_a_missing_folder_is_named(run: Run, tmp_path: Path, name: str, code: str) -> None:
    done = run(name, str(tmp_path / "none"), *CALLS[name])
    assert done.returncode == 1
    assert done.stderr.startswith(code)


def test_a_state_is_kept_for_root_alone_and_read_with_its_lock(run: Run, tmp_path: Path) -> None:
    file, lock = tmp_path / "lib/upgrade.json", tmp_path / "lock"
    assert run("read_state", str(file), str(lock)).stdout == "-\n"
    for text in ('{"schema": 1}', "{}"):
        assert run("put_state", str(file), text).returncode == 0
        assert run("read_state", str(file), str(lock)).stdout == f"-\n{text}\n"
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.parent.stat().st_mode & 0o777 == 0o700
    lock.write_text("gpu@controller [1]\n")
    with lock.open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert run("read_state", str(file), str(lock)).stdout == "gpu@controller [1]\n{}\n"
    file.unlink()
    file.symlink_to(lock)
    assert run("read_state", str(file), str(lock)).stdout == "-\n"


def test_damaged_packages_are_not_taken(run: Run, folder: Path) -> None:
    assert run("take", str(folder), *CALLS["take"]).returncode == 0
    (folder / "packages/driver.rpm").write_text("other")
    assert run("take", str(folder), *CALLS["take"]).stderr.startswith(
        "GF055 unusable\n  | ./driver.rpm"
    )
    (folder / "from").write_text("2\n")
    assert run("take", str(folder), *CALLS["take"]).stderr.startswith("GF055")


def test_what_a_run_has_fetched_stays(run: Run, folder: Path) -> None:
    (folder / "run").write_text("b\n")
    assert run("keep", str(folder), *CALLS["keep"]).returncode == 0
    assert (folder / "packages/driver.rpm").read_text() == "package"


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
    done = run("restore", str(folder), *CALLS["restore"], *installed)
    assert done.returncode == 0, done.stderr
    file = f"{folder}/packages/driver.rpm"
    assert asked.read_text().splitlines() == [call.replace("F", file) for call in calls]


@pytest.mark.parametrize("fails", ["-U", "-e"])
def test_a_transaction_that_fails_is_reported(
    run: Run, folder: Path, tmp_path: Path, fails: str
) -> None:
    asked = rpm(tmp_path, fails)
    done = run("restore", str(folder), *CALLS["restore"], "extra")
    assert done.returncode == 1
    assert done.stderr == f"GF057 failed\n  | error: {fails}\n"
    assert len(asked.read_text().splitlines()) == 1 + (fails == "-e")


def test_packages_that_are_not_there_afterwards_are_named(
    run: Run, folder: Path, tmp_path: Path
) -> None:
    fake(tmp_path, "rpm", "case \"$*\" in '-qp '*) echo driver=1-1 ;; esac")
    done = run("restore", str(folder), *CALLS["restore"])
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
    """The packages need 100 MiB, and 64 MiB must stay free."""
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
        assert done.stderr == "GF051 not kept\n  | free: 163 MiB\n  | needed: 165 MiB\n"


@pytest.mark.parametrize("name", ["health", "validate", "keep"])
def test_an_nvidia_smi_that_ignores_sigterm_holds_no_run(
    run: Run, folder: Path, tmp_path: Path, name: str
) -> None:
    fake(tmp_path, "nvidia-smi", "trap '' TERM; exec sleep 60")
    for program in ("systemctl", "dmesg", "rpm"):
        fake(tmp_path, program, "exit 1")
    calls = {
        "health": ("1",),
        "validate": (str(folder), "1", "", "1", "GF054 differs"),
        "keep": (str(folder), "b", "1", "GF051 not kept", "dnf", "1"),
    }
    done = run(name, *calls[name])
    health = (folder / "health").read_text() if name == "keep" else ""
    assert ("GF054" if name == "validate" else "gpus 0") in done.stdout + done.stderr + health


def test_every_time_limit_of_a_script_ends_what_ignores_sigterm() -> None:
    scripts = sorted(Path(gpufleet.__file__).parent.rglob("*.sh"))
    assert scripts
    for path in scripts:
        for line in path.read_text().splitlines():
            code = line.partition("#")[0]
            assert not re.search(r"(?<![\w-])timeout (?!-k )", code), f"{path}: {line}"
