"""Unattended upgrades: what apt's own files of settings say."""

from __future__ import annotations

import pytest

from gpufleet.facts.model import ManagedFile, Package
from gpufleet.facts.sections.packages import PackageState, upgrades_unattended

FOLDER = "/etc/apt/apt.conf.d"
ON, OFF = (f'APT::Periodic::Unattended-Upgrade "{value}";\n' for value in "10")


def upgrades(files: dict[str, str]) -> bool:
    there = {"unattended-upgrades": Package("unattended-upgrades", "2.9.1", "all")}
    state = PackageState("apt", there, frozenset(), "")
    paths = {f"{FOLDER}/{name}": text for name, text in files.items()}
    found = {path: ManagedFile(path, text) for path, text in paths.items()}
    return upgrades_unattended(state, found, {})


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"20auto-upgrades": ON}, True),
        ({"20auto-upgrades": OFF}, False),
        ({"20auto-upgrades": ON, "99local.conf": OFF}, False),
        ({"20auto-upgrades": ON, "99local": OFF}, False),
        ({"20auto-upgrades": OFF, "20auto-upgrades.ucf-dist": ON}, False),
        ({"20auto-upgrades": ON, "20auto-upgrades.bak": OFF}, True),
        ({"20auto-upgrades.disabled": ON}, False),
        ({"20auto-upgrades": ON, "99-off~": OFF}, True),
    ],
)
def test_only_files_that_apt_reads_count(files: dict[str, str], expected: bool) -> None:
    assert upgrades(files) is expected
