"""Code names every script and data file as ROOM/NAME, and uses each of them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gpufleet.host.shell import SHARED_FUNCTIONS

ROOT = Path(__file__).resolve().parents[3]
CODE = "\n".join(path.read_text() for path in sorted(ROOT.glob("gpufleet/**/*.py")))

BUNDLE_SCRIPTS = {
    f"bundle/{name}"
    for name in ("apt_closure", "apt_fetch", "apt_lists", "kubeadm_images", "rpm_closure")
}


@pytest.mark.parametrize(
    ("call", "folder", "suffix", "others"),
    [
        (
            "script_command",
            "scripts",
            ".sh",
            # parts of others; those that gather.py of the room `bundle` names without their room
            {"host/prelude", *SHARED_FUNCTIONS, *BUNDLE_SCRIPTS},
        ),
        (r"(?:read_data|entry_loader)", "data", ".yaml", set()),
    ],
)
def test_files_and_their_users_agree(call: str, folder: str, suffix: str, others: set[str]) -> None:
    there = {
        f"{path.parts[-3]}/{path.stem}" for path in ROOT.glob(f"gpufleet/*/{folder}/*{suffix}")
    }
    named = set(re.findall(rf'\b{call}\(\s*(?:\w+, )?"([\w-]+(?:/[\w-]+)?)"', CODE))
    assert named | others == there


def test_folders_of_data_and_their_users_agree() -> None:
    there = {f"{path.parts[-3]}/{path.name}" for path in ROOT.glob("gpufleet/*/data/*/")}
    assert set(re.findall(r'\bread_folder\(\s*"([\w-]+/[\w-]+)"', CODE)) == there
