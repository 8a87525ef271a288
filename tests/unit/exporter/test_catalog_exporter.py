"""The exporter for each DCGM, driver and distribution."""

from __future__ import annotations

from typing import Any

import pytest

from gpufleet.core.versions import version_tuple
from gpufleet.exporter.resolve import ExporterChoice, resolve_exporter
from gpufleet.exporter.role import ROLE as EXPORTER
from gpufleet.node.catalog import load_catalog
from gpufleet.node.settings import load_node_settings

CATALOG = load_catalog()
A100, P100, V100 = 0x20B2, 0x15F8, 0x1DB1


def choose(
    distribution: str = "ubuntu2204", branch: int = 580, device: int = A100, **data: Any
) -> ExporterChoice:
    settings, problems = load_node_settings(
        {f"exporter_{key}": value for key, value in data.items()}
    )
    assert settings is not None, problems
    return resolve_exporter(
        CATALOG,
        distribution=CATALOG.distribution(distribution) or distribution,
        branch=branch,
        devices=[device],
        settings=settings.of(EXPORTER),
    )


def test_the_default_is_a_pair_without_a_known_vulnerability() -> None:
    choice = choose()
    assert (choice.version, choice.dcgm) == ("4.8.3", "4.6.0")
    assert choice.image == "nvcr.io/nvidia/k8s/dcgm-exporter:4.6.0-4.8.3-distroless"
    assert choice.exporter_packages == ("datacenter-gpu-manager-exporter",)
    assert choice.findings == ()


@pytest.mark.parametrize(
    ("branch", "device", "cuda"),
    [
        (470, A100, ["11"]),
        (535, A100, ["12"]),
        (575, V100, ["12"]),
        (580, A100, ["13"]),
        (595, A100, ["13"]),
        (580, P100, ["13", "12"]),
    ],
)
def test_cuda_packages_go_with_the_driver(branch: int, device: int, cuda: list[str]) -> None:
    names = choose(branch=branch, device=device).dcgm_packages
    assert names[:2] == ("datacenter-gpu-manager-4-core", "datacenter-gpu-manager-4-proprietary")
    plain = [name for name in names[2:] if "proprietary" not in name]
    assert plain == [f"datacenter-gpu-manager-4-cuda{major}" for major in cuda]


@pytest.mark.parametrize(
    ("distribution", "why"),
    [("rhel7", "glibc 2.27"), ("ubuntu2004", "none is known"), ("plan9", "none is known")],
)
def test_missing_packages_have_a_reason(distribution: str, why: str) -> None:
    assert why in choose(distribution).no_packages
    assert choose(distribution).image


def test_a_package_that_was_not_seen_is_said_to_be_so() -> None:
    assert choose("debian12").no_packages == ""
    assert "not seen" in choose("debian12").reason
    assert "not seen" not in choose("ubuntu2204").reason


@pytest.mark.parametrize(
    ("version", "code", "text"),
    [
        ("4.8.2", "GF586", "CVE-2026-47483"),
        ("4.9.0", "GF586", "renames"),
        ("5.0.1", "GF585", "4.8.3"),
    ],
)
def test_versions_with_a_catch(version: str, code: str, text: str) -> None:
    (finding,) = choose(version=version).findings
    assert finding.code == code
    assert text in finding.message


def test_an_unknown_version_with_its_dcgm_is_taken() -> None:
    choice = choose(version="5.0.1", dcgm_version="5.0.0")
    assert choice.findings == ()
    assert choice.image.endswith(":5.0.0-5.0.1-distroless")


def test_an_image_of_the_users_own() -> None:
    assert choose(image="registry.example/dcgm:1").image == "registry.example/dcgm:1"


def test_the_catalog_agrees_with_itself() -> None:
    exporter = CATALOG.exporter
    numbers = [version_tuple(entry.version) for entry in exporter.versions]
    assert numbers == sorted(set(numbers))
    newest = exporter.version(exporter.newest)
    assert newest is not None
    assert not newest.warning
    assert all(version_tuple(newest.version) >= version_tuple(a.fixed) for a in exporter.security)
    named = {generation.name for generation in CATALOG.gpus.generations}
    assert all(set(entry.generations) <= named for entry in exporter.cuda)
    for branch in CATALOG.branches.branches:
        plain = [c for c in exporter.cuda if c.covers(branch.branch) and not c.generations]
        assert len(plain) == 1, branch.branch
