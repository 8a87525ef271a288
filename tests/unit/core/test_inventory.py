"""Hosts of an inventory by their names."""

from __future__ import annotations

import json
import subprocess
import sys
from fnmatch import fnmatch

import pytest

from gpufleet.core.inventory import exact_limit

NAMES = ("h100", "h100-02", "gpu[1]", "gpu1", "gpu*", "gpu?", "@local", "@ssh/gpu-01", "[", "!a]")
# Groups may be named like a host or a pattern: pyinfra's --limit matches names of groups, too.
CHOSEN = """\
import json, sys
from pyinfra.api import Inventory
from pyinfra_cli.cli import _get_inventory_pattern_matches
names, limits = json.load(sys.stdin)
groups = {"h100": (["h100", "h100-02"], {}), "gpu*": (["gpu1"], {}), "@local": (["gpu1"], {})}
inventory = Inventory((names, {}), **groups)
found = [_get_inventory_pattern_matches(inventory, [limit], "--limit") for limit in limits]
print(json.dumps([sorted(host.name for host in hosts) for hosts in found]))
"""


@pytest.mark.parametrize("name", NAMES)
def test_a_pattern_matches_one_name(name: str) -> None:
    assert [each for each in NAMES if fnmatch(each, exact_limit(name))] == [name]


def test_pyinfra_selects_a_host_alone() -> None:
    """In a separate process, because pyinfra's command makes gevent patch the standard library."""
    asked = json.dumps([NAMES, [exact_limit(name) for name in NAMES]])
    words = [sys.executable, "-c", CHOSEN]
    done = subprocess.run(words, input=asked, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == [[name] for name in NAMES]
