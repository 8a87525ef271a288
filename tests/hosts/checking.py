"""Runs the shipped checks as users do: `gpufleet verify` on an inventory."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from deploying import PYINFRA, ROOT, deploy_command

from gpufleet_sandbox import Host

GPUFLEET = PYINFRA.with_name("gpufleet")


def verify(hosts: Sequence[Host], **data: Any) -> dict[str, Any]:
    """Host -> its part of the JSON report: `passed`, `failed`, `skipped`, `checks`."""
    with TemporaryDirectory(prefix="gpufleet-test-") as folder:
        inventory = deploy_command("gpu_node", hosts, Path(folder), data=data)[-2]
        report = Path(folder, "checks.json")
        done = subprocess.run(
            [str(GPUFLEET), "verify", inventory, "--json", str(report)],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=120,
            check=False,
        )
        assert report.exists(), done.stdout
        found = json.loads(report.read_text())["hosts"]
    failed = any(part["failed"] for part in found.values())
    assert done.returncode == int(failed), done.stdout
    return dict(found)
