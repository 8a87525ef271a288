"""Setup of the product needs neither root nor Debian; that of the sandbox does, and says so."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BASH = shutil.which("bash") or "/bin/bash"


def test_setup_of_the_product_needs_no_root_and_no_debian() -> None:
    code = [
        line
        for line in (ROOT / "scripts/setup.sh").read_text().splitlines()
        if not line.startswith("#")
    ]
    for word in ("apt", "dpkg", "sudo", "id -u", "mapfile"):
        assert not [line for line in code if word in line], word


def test_setup_of_the_sandbox_elsewhere_names_that_of_the_product(tmp_path: Path) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "dirname").symlink_to(shutil.which("dirname") or "/usr/bin/dirname")
    done = subprocess.run(
        [BASH, ROOT / "scripts/setup_sandbox.sh", tmp_path / "stamp"],
        env={"PATH": str(programs)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert "make setup-product" in done.stderr
    assert not (tmp_path / "stamp").exists()


def test_make_targets_of_the_product_leave_the_sandbox_alone() -> None:
    words = ["make", "--dry-run", "--always-make", "lint", "docs", "test-unit", "setup-product"]
    done = subprocess.run(
        words, cwd=ROOT, env=os.environ | {"MAKEFLAGS": ""}, capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    assert "scripts/setup.sh" in done.stdout
    assert "setup_sandbox" not in done.stdout


@pytest.mark.parametrize(("target", "needed"), [("test", False), ("test-all", True)])
def test_only_all_tests_need_a_browser(target: str, needed: bool) -> None:
    done = subprocess.run(
        ["make", "--dry-run", "--always-make", target], cwd=ROOT,
        env=os.environ | {"MAKEFLAGS": ""}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert ("setup_browser" in done.stdout) == needed


def test_a_browser_that_is_there_is_not_installed(tmp_path: Path) -> None:
    stamp = tmp_path / "stamp"
    there = shutil.which("true") or "/bin/true"
    subprocess.run([BASH, ROOT / "scripts/setup_browser.sh", there, stamp], check=True)
    assert stamp.exists()
