"""The choice of a version of the container toolkit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from gpufleet.node.catalog import load_catalog
from gpufleet.toolkit.resolve import ToolkitChoice, resolve_toolkit
from gpufleet.toolkit.settings import ToolkitSettings

EXAMPLES = Path(__file__).parents[3] / "scripts/key_examples.yaml"


def choose(distribution: str, architecture: str = "x86_64", **settings: Any) -> ToolkitChoice:
    return resolve_toolkit(
        load_catalog(),
        distribution=load_catalog().distribution(distribution) or distribution,
        architecture=architecture,
        settings=ToolkitSettings(**settings),
    )


def codes(choice: ToolkitChoice) -> list[str]:
    return [finding.code for finding in choice.findings]


@pytest.mark.parametrize("distribution", ["ubuntu2204", "rhel7", "rhel9", "debian12", "sles15"])
def test_the_newest_by_default(distribution: str) -> None:
    choice = choose(distribution)
    assert choice.version == load_catalog().toolkit.newest
    assert not choice.blocked
    assert "nvidia-container-toolkit-base" in choice.packages


@pytest.mark.parametrize("version", ["1.19.0", "1.19.1", "1.19.7"])
def test_rhel7_cannot_read_the_packages_of_1_19(version: str) -> None:
    choice = choose("rhel7", version=version)
    assert codes(choice)[0] == "GF160"
    assert "zstd" in choice.findings[0].message
    assert not choose("rhel8", version=version).blocked


@pytest.mark.parametrize(("version", "insecure"), [("1.18.2", True), ("1.19.1", False)])
def test_the_security_floor(version: str, insecure: bool) -> None:
    assert ("GF161" in codes(choose("ubuntu2204", version=version))) is insecure


def test_rhel7_may_keep_an_insecure_version_with_a_warning() -> None:
    choice = choose("rhel7", version="1.18.2")
    assert not choice.blocked
    assert codes(choice)[0] == "GF161"


def test_other_versions() -> None:
    assert codes(choose("ubuntu2204", version="1.13.5"))[0] == "GF160"
    assert codes(choose("ubuntu2204", version="1.99.0")) == ["GF162"]


def test_platforms() -> None:
    assert codes(choose("plan9")) == ["GF101"]
    assert codes(choose("ubuntu2204", architecture="ppc64le")) == ["GF165"]
    assert codes(choose("debian12")) == ["GF163"]


def test_the_example_of_a_mirror_has_the_layout_of_the_original() -> None:
    """The example in docs/reference/keys.md has packages and key at the same paths as upstream."""
    shown = yaml.safe_load(EXAMPLES.read_text())["toolkit_repo_url"]
    ours = choose("ubuntu2404", repo_url=shown).repository
    upstream = choose("ubuntu2404").repository
    host = "https://nvidia.github.io/libnvidia-container"
    assert ours.url.removeprefix(shown) == upstream.url.removeprefix(host)
    assert ours.key_url.removeprefix(shown) == upstream.key_url.removeprefix(host)


def test_repositories() -> None:
    deb = choose("ubuntu2404", architecture="aarch64").repository
    assert deb.url == "https://nvidia.github.io/libnvidia-container/stable/deb/arm64/"
    assert deb.key_url == "https://nvidia.github.io/libnvidia-container/gpgkey"
    rpm = choose("rhel9", repo_url="https://mirror.example", repo_key_fingerprint="B" * 40)
    assert rpm.repository.url == "https://mirror.example/stable/rpm/x86_64/"
    assert rpm.repository.key_fingerprints == ("B" * 40,)
    assert (rpm.repository.signed_packages, rpm.repository.signed_metadata) == (False, True)
