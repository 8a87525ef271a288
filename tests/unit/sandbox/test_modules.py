"""Builds of Go programs."""

from __future__ import annotations

import os
from pathlib import Path

from gpufleet_sandbox.cluster.modules import OwnModule


def test_a_build_has_the_lowest_priority(tmp_path: Path) -> None:
    go = tmp_path / "go"
    go.write_text("#!/bin/sh\nnice\n")
    go.chmod(0o755)
    module = OwnModule(go, tmp_path / "module", os.environ, print)
    assert module.run("build").strip() == "19"
