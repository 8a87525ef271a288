"""No module of the working directory shadows another one in processes that gpufleet starts."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from gpufleet.core.python import python_code, python_module
from gpufleet.verify.inventory import load_targets

GPUFLEET = Path(__file__).parents[3] / "gpufleet"
SHADOWS = ("runpy", "json", "socket", "click", "pyinfra", "gpufleet", "platform", "pkgutil")
LOADED = "open({marker!r}, 'a').write(__name__)\nraise SystemExit(3)\n"


@pytest.fixture
def marker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file that exists once a module of the working directory was loaded."""
    marker = tmp_path / "marker"
    folder = tmp_path / "work"
    folder.mkdir()
    for name in SHADOWS:
        (folder / f"{name}.py").write_text(LOADED.format(marker=str(marker)))
    (folder / "fleet.py").write_text('gpu_nodes = ["one"]\n')
    monkeypatch.chdir(folder)
    return marker


@pytest.mark.parametrize("version", [(3, 10), (3, 11)])
def test_nothing_is_loaded_from_the_working_directory(
    marker: Path, monkeypatch: pytest.MonkeyPatch, version: tuple[int, int]
) -> None:
    if sys.version_info < version:
        pytest.skip("-P came with Python 3.11")
    monkeypatch.setattr(sys, "version_info", version)
    module = [*python_module("json.tool"), "--help"]
    code = python_code("import json, gpufleet.core; print(json.__file__)")
    for command in (module, code):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert (done.returncode, marker.exists()) == (0, False), done.stderr
        assert "usage: " in done.stdout or "json/__init__.py" in done.stdout


def test_an_inventory_is_loaded_with_pythons_own_modules(marker: Path) -> None:
    assert [target.name for target in load_targets("fleet.py")] == ["one"]
    assert not marker.exists()


def test_no_other_command_starts_a_python() -> None:
    found = {
        str(path.relative_to(GPUFLEET)): line.strip()
        for path in GPUFLEET.rglob("*.py")
        for line in path.read_text().splitlines()
        if "sys.executable" in line and path.name != "python.py"
    }
    assert set(found) == {"cli/deploy.py"}
    assert "pyinfra_command()" in found["cli/deploy.py"]
