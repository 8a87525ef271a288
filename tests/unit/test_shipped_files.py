"""The wheel and the sdist ship files that git tracks, and nothing else of a checkout."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from hatchling.builders.sdist import SdistBuilder
from hatchling.builders.wheel import WheelBuilder

ROOT = Path(__file__).resolve().parents[2]
SHIPPED = {
    "config.py": "config.py",
    "deploys/": "deploys/",
    "docs/": "docs/",
    "inventories/group_data/all.py": "inventories/group_data/all.py",
    "inventories/prod.py": "inventories/prod.py",
    "roles/": "roles/",
    "templates/": "templates/",
    "tests/post_deploy/": "checks/",
}
IGNORED = [
    ".env",
    "deploys/site.py",
    "docs/passwords.txt",
    "gpufleet/.env",
    "gpufleet/driver/id_ed25519",
    "gpufleet/key.pem",
    "inventories/group_data/vault.py",
    "inventories/prod.py.bak",
    "inventories/real.py",
    "report.xml",
    "roles/driver/.env",
    "roles/driver/secrets.py",
    "roles/id_rsa",
    "templates/init/inventories/real.py",
    "templates/monitoring/values.yaml",
    "tests/post_deploy/logins.py",
    "tests/post_deploy/netrc",
]


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the files that git tracks, and files that it ignores."""
    copy = tmp_path_factory.mktemp("checkout")
    for path in tracked():
        if path.startswith(("gpufleet/", *SHIPPED)) or "/" not in path:
            (copy / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / path, copy / path)
    for path in IGNORED:
        assert not (copy / path).exists()
        (copy / path).write_text("secret")
    return copy


def tracked() -> list[str]:
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return [path for path in listed.stdout.split("\0") if path and (ROOT / path).is_file()]


def place(path: str) -> str | None:
    """The path in the wheel of a file of the checkout, or None if it does not ship."""
    if path.startswith("gpufleet/"):
        return path
    if path.startswith("docs/") and not path.endswith(".md"):
        return None  # pictures, and the style of the site
    for source, target in SHIPPED.items():
        if path.startswith(source):
            return f"gpufleet/_shipped/{path.replace(source, target, 1)}"
    return None


def test_the_wheel_has_what_git_tracks_alone(checkout: Path) -> None:
    found = [
        file.distribution_path for file in WheelBuilder(str(checkout)).recurse_included_files()
    ]
    assert sorted(found) == sorted(filter(None, map(place, tracked())))


def test_the_sdist_has_nothing_that_git_ignores(checkout: Path) -> None:
    builder = SdistBuilder(str(checkout))
    found = {file.relative_path for file in builder.recurse_included_files()}
    assert found.isdisjoint(IGNORED)
    assert {path for path in tracked() if place(path)} <= found
