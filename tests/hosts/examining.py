"""Runs commands of gpufleet that read hosts, as users do: on an inventory, without a terminal."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from checking import GPUFLEET
from deploying import ROOT

from gpufleet_sandbox import Host

INVENTORY = """\
from gpufleet_sandbox.inventory import group_data, nodes

_named = [each for each in nodes({sandbox!r}) if each[0] in {names!r}]
gpu_nodes = (_named, {{**group_data(), **{data!r}}})
"""
SILENT = 'silent = [("gone", {"ssh_hostname": "127.0.0.1", "ssh_port": 9})]\n'


def write_inventory(folder: Path, hosts: Sequence[Host], more: str = "", **data: Any) -> Path:
    """An inventory of hosts of one sandbox, all with `data`. `more`: its other lines."""
    names = [host.name for host in hosts]
    path = folder / "inventory.py"
    path.write_text(INVENTORY.format(sandbox=hosts[0].sandbox, names=names, data=data) + more)
    return path


def run_gpufleet(*words: str | Path, columns: int = 200) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [GPUFLEET, *words], cwd=ROOT, env=os.environ | {"COLUMNS": str(columns)},
        stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=600,
    )  # fmt: skip
