"""helm and the wheels of gpufleet in a bundle."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from gpufleet.bundle.operations import tools
from gpufleet.bundle.operations.folder import writing_bundle
from gpufleet.bundle.operations.store import WORK_FOLDER, work_folder
from gpufleet.core.process import Process
from gpufleet.core.python import python_module
from gpufleet.core.stopped import Stopped
from gpufleet.helm.findings.releases import HELM_MISSING
from gpufleet.kube.operations.access import ClusterProblem


@pytest.mark.parametrize("site", ["", "https://mirror.example.com/helm"])
def test_helm_is_at_its_address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, site: str) -> None:
    archive = tmp_path / "helm-v3-linux-amd64.tar.gz"
    archive.write_bytes(b"an archive")
    monkeypatch.setattr(tools, "helm_archive", lambda *how: archive)
    part = tools.store_helm(tmp_path / "made", site)
    (file,), (place,) = part.files, part.repositories
    assert file.path == f"get.helm.sh/{archive.name}"
    assert file.source == f"{site or 'https://get.helm.sh'}/{archive.name}"
    assert (tmp_path / "made" / file.path).read_bytes() == b"an archive"
    assert (place.setting, place.path) == ("cluster_helm_url", "get.helm.sh")


def test_a_helm_that_cannot_be_had_is_named_as_lacking(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuses(*how: Any) -> Path:
        raise ClusterProblem(HELM_MISSING(reason="no way out", oldest="3.13"))

    monkeypatch.setattr(tools, "helm_archive", refuses)
    part = tools.store_helm(tmp_path, "")
    assert part.files == ()
    assert [(each.what, "no way out" in each.why) for each in part.lacking] == [("helm", True)]


ORIGINS = {
    "an index": (None, ""),
    "a folder": ({"url": "file:///src", "dir_info": {"editable": True}}, "file:///src"),
    "an archive": ({"url": "https://x/gpufleet-1.2-py3-none-any.whl"}, "https://x/gpufleet-1.2"),
    "a commit": (
        {"url": "https://x/g.git", "vcs_info": {"vcs": "git", "commit_id": "abc"}},
        "git+https://x/g.git@abc",
    ),
}


@pytest.mark.parametrize("origin", ORIGINS)
def test_wheels_are_built_from_where_gpufleet_came_from(
    monkeypatch: pytest.MonkeyPatch, origin: str
) -> None:
    data, wanted = ORIGINS[origin]

    class Installed:
        name, version = "gpufleet", "1.2"

        def read_text(self, name: str) -> str | None:
            assert name == "direct_url.json"
            return json.dumps(data) if data else None

    monkeypatch.setattr(tools, "distribution", lambda name: Installed())
    assert tools.own_source().startswith(wanted)
    if not wanted:
        (lacking,) = tools.store_wheels(Path("unused")).lacking
        assert lacking.what == "wheels of gpufleet"


PIP = python_module("pip")


def pip(monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """A program in the place of pip, which gets pip's words."""

    def starts(command: list[str], **how: Any) -> Process:
        assert command[: len(PIP) + 1] == [*PIP, "wheel"]
        return Process([sys.executable, "-c", script, *command], **how)

    monkeypatch.setattr(tools, "Process", starts)


WRITES = """
import sys; from pathlib import Path
folder = Path(sys.argv[sys.argv.index("--wheel-dir") + 1])
pins = Path(sys.argv[sys.argv.index("--constraint") + 1]).read_text().splitlines()
assert any(line.startswith("pyinfra==") for line in pins), pins
(folder / "gpufleet-1.2-py3-none-any.whl").write_text("wheel")
(folder / "pyinfra-3.4-py2.py3-none-any.whl").write_text("other")
"""


def test_wheels_are_kept_with_names_and_versions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pip(monkeypatch, WRITES)
    with writing_bundle(tmp_path):
        found = tools.store_wheels(tmp_path).files
    assert [(each.name, each.version, each.sort) for each in found] == [
        ("gpufleet", "1.2", "wheel"), ("pyinfra", "3.4", "wheel"),
    ]  # fmt: skip
    assert all((tmp_path / each.path).is_file() for each in found)


def test_wheels_that_cannot_be_built_are_named_as_lacking(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pip(monkeypatch, "import sys; sys.exit('ERROR: No matching distribution found for x')")
    part = tools.store_wheels(tmp_path)
    assert part.files == ()
    (lacking,) = part.lacking
    assert "No matching distribution" in lacking.why


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / WORK_FOLDER).write_text("a file in the place of a folder")
    with pytest.raises(Stopped, match="wheel of gpufleet"):
        tools.store_wheels(tmp_path)
    with pytest.raises(Stopped, match="the image x:1"), work_folder(tmp_path, "the image x:1"):
        pass
