"""`gpufleet catalog check` on a mirror of the real sources, in which things change."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from gpufleet.cli import main
from tests.unit.catalog.live_mirror import LiveMirror, served

REPOSITORIES = ("--only", "drivers", "--only", "charts")


@pytest.fixture
def mirror(tmp_path: Path) -> LiveMirror:
    return LiveMirror(tmp_path / "mirror")


def check(mirror: LiveMirror, *options: str) -> Result:
    with served(mirror.root) as url:
        return CliRunner().invoke(main, ["catalog", "check", "--mirror", url, *options])


def test_nothing_is_missing(mirror: LiveMirror) -> None:
    mirror.write()
    result = check(mirror, *REPOSITORIES, "--json")
    assert (result.exit_code, json.loads(result.stdout)["gaps"]) == (0, [])


def test_a_branch_and_a_chart_are_missing(mirror: LiveMirror) -> None:
    for name in ("nvidia-dkms-open", "nvidia-firmware", "libnvidia-compute"):
        mirror.drivers["ubuntu2404"][name].add("625.10.01")
    mirror.charts["gpu-operator"].append("v27.1.0 >= 1.30.0-0")
    mirror.write()
    result = check(mirror, *REPOSITORIES)
    assert result.exit_code == 2, result.output
    for text in ("625 (625.10.01", "gpu-operator v27.1.0", ">= 1.30.0-0"):
        assert text in result.output
