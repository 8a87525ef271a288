"""Runs the shipped checks as users do: `gpufleet verify` on an inventory."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from deploying import PYINFRA, ROOT, deploy_command

from gpufleet_sandbox import Host
from tests import warm

GPUFLEET = PYINFRA.with_name("gpufleet")


def verify(hosts: Sequence[Host], **data: Any) -> dict[str, Any]:
    """Host -> its part of the JSON report: `passed`, `failed`, `skipped`, `checks`."""
    with TemporaryDirectory(prefix="gpufleet-test-") as folder:
        inventory = deploy_command("gpu_node", hosts, Path(folder), data=data)[-2]
        report = Path(folder, "checks.json")
        words = [GPUFLEET, "verify", inventory, "--json", report]
        status, output = warm.ended(words, ROOT, os.environ)
        assert report.exists(), output
        found = json.loads(report.read_text())["hosts"]
    failed = any(part["failed"] for part in found.values())
    assert status == int(failed), output
    return dict(found)
