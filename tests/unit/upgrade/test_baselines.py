"""The baseline of a host's checks: its Xid errors and units from before this attempt."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.upgrade.scripts_setup import CALLS, Run, fake, folder, rpm, run

__all__ = ["folder", "run"]  # fixtures
OLD = "gpus 8\nxids 0\nunit docker\n"


def host(tmp_path: Path, xids: int, units: str = "none") -> None:
    """A host with this number of Xid errors in its log and one running unit."""
    for name in ("nvidia-smi", "nvidia-ctk"):
        fake(tmp_path, name, "exit 1")
    fake(tmp_path, "dmesg", f"for i in $(seq {xids}); do echo 'NVRM: Xid (PCI:1): 79'; done")
    fake(tmp_path, "systemctl", f'case "$3" in {units}) ;; *) exit 1 ;; esac')


def finds_xids(run: Run, folder: Path) -> bool:
    done = run("validate", str(folder), *CALLS["validate"])
    assert "loaded module" in done.stderr, done.stderr
    return "Xid errors" in done.stderr


@pytest.mark.parametrize("name", ["note", "restore", "take"])
def test_an_xid_from_before_an_attempt_says_nothing_about_it(
    run: Run, folder: Path, tmp_path: Path, name: str
) -> None:
    rpm(tmp_path)
    host(tmp_path, xids=1)
    (folder / "health").write_text(OLD)
    assert run(name, str(folder), *CALLS[name]).returncode == 0
    if name == "take":  # right before its change, which has its own baseline
        assert run("note", str(folder), *CALLS["note"]).returncode == 0
    assert not finds_xids(run, folder)
    host(tmp_path, xids=2)
    assert finds_xids(run, folder)


@pytest.mark.parametrize("name", ["note", "restore"])
def test_an_attempt_that_is_resumed_keeps_its_baseline(
    run: Run, folder: Path, tmp_path: Path, name: str
) -> None:
    rpm(tmp_path)
    host(tmp_path, xids=0)
    (folder / "health").write_text(OLD)
    assert run(name, str(folder), *CALLS[name]).returncode == 0
    host(tmp_path, xids=1)
    assert run(name, str(folder), *CALLS[name]).returncode == 0
    assert finds_xids(run, folder)


def test_a_reboot_clears_the_log(run: Run, folder: Path, tmp_path: Path) -> None:
    (folder / "health").write_text("gpus 8\nxids 3\nboot another\n")
    host(tmp_path, xids=0)
    assert not finds_xids(run, folder)
    host(tmp_path, xids=1)
    assert finds_xids(run, folder)


def test_a_roll_back_expects_the_units_of_now(run: Run, folder: Path, tmp_path: Path) -> None:
    (folder / "health").write_text(OLD)
    host(tmp_path, xids=0, units="containerd")
    assert run("take", str(folder), *CALLS["take"]).returncode == 0
    kept = (folder / "health").read_text().splitlines()
    assert [line for line in kept if line.startswith("unit")] == ["unit containerd"]
    assert "gpus 8" in kept


@pytest.mark.parametrize(("there", "is_wrong"), [(7, True), (8, False), (9, False)])
def test_a_gpu_that_the_change_returned_is_no_fault(
    run: Run, folder: Path, tmp_path: Path, there: int, is_wrong: bool
) -> None:
    """A GPU that had fallen off the bus works again after a reboot."""
    (folder / "health").write_text(OLD)
    host(tmp_path, xids=0)
    fake(tmp_path, "nvidia-smi", f'for i in $(seq {there}); do echo "GPU $i: H100"; done')
    done = run("validate", str(folder), *CALLS["validate"])
    assert ("GPUs of nvidia-smi" in done.stderr) is is_wrong, done.stderr
