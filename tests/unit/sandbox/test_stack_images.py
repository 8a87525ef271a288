"""Images of the GPU stack on a cluster of sandbox hosts, and the settings that name them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from gpufleet_sandbox.cluster.versions import versions
from gpufleet_sandbox.stack import monitoring_data, stack_images
from gpufleet_sandbox.stack.build import PROGRAMS
from gpufleet_sandbox.stack.names import names


def named(values: Any) -> set[str]:
    """Every image in values of charts, as registry/repository:tag."""
    if not isinstance(values, dict):
        return set()
    if {"repository", "tag"} <= set(values):
        registry = f"{values['registry']}/" if "registry" in values else ""
        return {f"{registry}{values['repository']}:{values['tag']}"}
    return {image for each in values.values() for image in named(each)}


def test_every_image_that_the_settings_name_is_written() -> None:
    found = {image.name for image in stack_images({name: Path(name) for name in PROGRAMS})}
    assert found == named(monitoring_data())


def test_each_program_is_built_for_the_stack_or_for_tests() -> None:
    known = versions().programs
    of_stack = {name for name, program in known.items() if program.needed_by == "stack"}
    assert of_stack <= set(PROGRAMS) <= set(known)


def test_prometheus_is_named_by_its_release() -> None:
    assert re.fullmatch(r"v3\.\d+\.\d+", names()["prometheus"].tag)


def test_our_own_program_is_built_again_when_it_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    exporter = versions().programs["dcgm-exporter"]
    before = exporter.built_from
    assert before.startswith(f"{exporter.version}-")
    changed = tmp_path / "main.go"
    changed.write_text(exporter.local_source.read_text() + "\n")
    assert exporter.model_copy(update={"local": str(changed)}).built_from != before
    assert versions().programs["etcd"].built_from == versions().programs["etcd"].version


def test_a_shell_and_libc_are_where_they_are_needed(tmp_path: Path) -> None:
    programs = {name: tmp_path / name for name in PROGRAMS}
    for path in programs.values():
        path.write_text("program")
    for image in stack_images(programs):
        root = tmp_path / image.name.replace("/", "_")
        root.mkdir()
        image.fill(root)
        assert (root / image.command[0].lstrip("/")).is_file()
        detects = "node-problem-detector" in image.name
        shell = root / "bin" / "sh"
        assert (shell.exists(), shell.is_symlink()) == (detects, False)
        assert (root / "bin" / "grep").is_symlink() is detects
