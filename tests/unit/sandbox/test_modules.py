"""How programs are built."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gpufleet.sandbox import SandboxError
from gpufleet.sandbox.cluster.modules import OwnModule


def module(folder: Path, script: str) -> OwnModule:
    """One whose go command is a shell script."""
    go = folder / "go"
    go.write_text(f"#!/bin/sh\n{script}\n")
    go.chmod(0o755)
    return OwnModule(go, folder / "module", os.environ, print)


def test_a_build_lets_everything_else_go_first(tmp_path: Path) -> None:
    assert module(tmp_path, "nice").run("build").strip() == "19"


def test_a_build_that_fails_is_told_with_its_last_words(tmp_path: Path) -> None:
    with pytest.raises(SandboxError, match=r"undefined: Verb"):
        module(tmp_path, "echo 'main.go:1:1: undefined: Verb' >&2; exit 1").run("build")
