"""The documented inventory that reads Ansible's takes its groups of groups and connection data."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from documents import blocks

from gpufleet.verify.inventory import load_targets

PAGE = "docs/how-to/inventories.md"
# as ansible-inventory of ansible-core 2.19.14 prints it: a parent group has no "hosts", an empty
# group is only named
LISTED = {
    "_meta": {
        "hostvars": {
            "g1": {"ansible_host": "192.0.2.1", "ansible_port": 2222, "ansible_user": "admin"},
            "g2": {"ansible_ssh_private_key_file": "/keys/fleet", "ansible_become": "true"},
        },
        "profile": "inventory_legacy",
    },
    "all": {"children": ["ungrouped", "gpu"]},
    "gpu": {"children": ["a100", "h100", "none"]},
    "a100": {"hosts": ["g1", "g2"]},
    "h100": {"hosts": ["g2", "g3"]},
}


@pytest.fixture
def inventory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (block,) = (block for block in blocks(PAGE) if '"ansible-inventory"' in block.text)
    (tmp_path / "prod.py").write_text(block.text)
    (tmp_path / "listed.json").write_text(json.dumps(LISTED))
    program = tmp_path / "ansible-inventory"
    program.write_text(f"#!/bin/sh\ncat {tmp_path}/listed.json\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    return str(tmp_path / "prod.py")


def test_hosts_of_child_groups_come_once_with_their_connection(inventory: str) -> None:
    targets = load_targets(inventory)
    assert all("gpu_nodes" in target.groups for target in targets)
    expected: dict[str, dict[str, Any]] = {
        "g1": {"ssh_hostname": "192.0.2.1", "ssh_port": 2222, "ssh_user": "admin"},
        "g2": {"ssh_key": "/keys/fleet"},
        "g3": {},
    }
    for target in targets:
        assert {"_sudo": True, **expected.pop(target.name)} == dict(target.data)
    assert expected == {}
