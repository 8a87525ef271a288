"""A bundle of packages, made from hosts, installs other hosts that reach nothing else."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from deploying import INVENTORY, ROOT, run_deploy

from gpufleet_sandbox import Host
from tests.hosts.conftest import HostFactory

pytestmark = [
    pytest.mark.hosts,
    pytest.mark.claim(
        "`bundle create` collects what `apply` then installs on a host that reaches the bundle "
        "alone, with apt and with dnf.",
        level=3,
    ),
]

GPUFLEET = Path(sys.executable).with_name("gpufleet")
SOURCES = {  # the file with the host's own source
    "ubuntu2404": "/etc/apt/sources.list",
    "el7": "/etc/yum.repos.d/CentOS-Base.repo",
}
BRANCH = {"ubuntu2404": "580", "el7": "550"}


def bundle(*words: str | Path) -> subprocess.CompletedProcess[str]:
    """`gpufleet bundle WORDS`."""
    command = [str(GPUFLEET), "bundle", *map(str, words)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)


@contextmanager
def served(folder: Path, address: str) -> Iterator[dict[str, str]]:
    """The keys of an inventory that `bundle serve` prints, while it serves."""
    command = [str(GPUFLEET), "bundle", "serve", str(folder), "--bind", address, "--port", "0"]
    server = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout
        yield dict(_keys(server.stdout))
    finally:
        server.terminate()
        server.wait()


def _keys(lines: Any) -> Iterator[tuple[str, str]]:
    """Key -> value; the URL of the server has the key "". The last of the keys ends it."""
    for line in lines:
        if match := re.match(r'"(\w+)": "(.*)",$', line):
            yield match[1], match[2]
            yield "", match[2].partition("/mirror/")[0]
            if match[1].startswith("toolkit"):
                return


@pytest.mark.parametrize("kind", ["ubuntu2404", "el7"])
def test_a_host_installs_from_a_bundle_alone(
    bare_host: HostFactory, mirror_host: Host, tmp_path: Path, kind: str
) -> None:
    data = {"driver_branch": BRANCH[kind], "exporter_enabled": False, "node_reboot": "if_needed"}
    first = bare_host(kind)
    inventory, made = tmp_path / "inventory.py", tmp_path / "bundle"
    inventory.write_text(_inventory([first], data))
    created = bundle("create", inventory, "--output", made)
    assert created.returncode == 0, created.stdout + created.stderr
    assert bundle("verify", made).returncode == 0
    listed = json.loads((made / "manifest.json").read_text())["files"]
    second = bare_host(kind)
    with mirror_host.fault("down"), served(made, second.gateway) as keys:
        second.run(f"sed -i 's,http://mirror/,{keys.pop('')}/mirror/,' {SOURCES[kind]}")
        done = run_deploy("gpu_node", [second], **data, **keys)
    assert done.returncode == 0, done.output
    driver = done.report[second.name]["driver"]["after"]
    assert any(driver in each["version"] for each in listed if each["sort"] == "package")


def _inventory(hosts: Sequence[Host], data: dict[str, Any]) -> str:
    wanted = json.dumps({host.name: {} for host in hosts})
    sandbox = hosts[0].sandbox
    return INVENTORY.format(wanted=wanted, data=json.dumps(data), sandbox=sandbox, groups=())
