"""`gpufleet catalog check` on a mirror of the real sources, in which things change."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from click.testing import CliRunner, Result

from gpufleet.cli import main
from tests.unit.catalog.live_mirror import LiveMirror, served

MakeKey = Callable[[str], tuple[str, bytes]]


def check(mirror: LiveMirror, *options: str) -> Result:
    with served(mirror.root) as url:
        return CliRunner().invoke(main, ["catalog", "check", "--mirror", url, *options])


def gaps(mirror: LiveMirror, *options: str) -> tuple[int, list[dict[str, Any]]]:
    """Exit status and gaps of a mirror that is written first."""
    mirror.write()
    result = check(mirror, "--json", *options)
    found = json.loads(result.stdout)
    assert [each for each in found["sources"] if each["finding"]] == []
    return result.exit_code, found["gaps"]


@pytest.mark.usefixtures("known_keys")
def test_a_mirror_that_the_catalog_knows_has_no_gap(mirror: LiveMirror) -> None:
    status, found = gaps(mirror)
    assert [each["message"] for each in found] == []
    assert status == 0


@pytest.mark.usefixtures("known_keys")
def test_every_change_is_found(mirror: LiveMirror, make_key: MakeKey) -> None:
    changed, expected = change_everything(mirror, make_key)
    status, found = gaps(mirror)
    assert status == 2
    missed = [
        (code, text)
        for code, text in expected
        if not any(each["code"] == code and text in each["message"] for each in found)
    ]
    assert missed == [], [each["message"] for each in found]
    assert len(found) == len(expected), [each["message"] for each in found]


def change_everything(
    mirror: LiveMirror, make_key: MakeKey
) -> tuple[LiveMirror, list[tuple[str, str]]]:
    """Change the mirror; returns it, and code and a part of the message of each gap."""
    for code in ("ubuntu2404", "rhel9"):
        for name, versions in mirror.drivers[code].items():
            if "615.71.09" in versions and "nvidia-dkms" != name != "kmod-nvidia-latest-dkms":
                versions.add("625.10.01")
    for versions in mirror.drivers["ubuntu2204"].values():
        if "580.178.04" in versions:
            versions.add("580.200.01")
    for versions in mirror.drivers["rhel10"].values():
        if "615.71.09" in versions:
            versions.add("620.20.02")
    renamed = mirror.drivers["debian13"]
    renamed["nvidia-persistence"] = {"595.91.07"}
    renamed["nvidia-persistenced"].remove("595.91.07")
    for versions in mirror.toolkit.values():
        versions.add("1.21.0")
    changed, mirror.keys["container toolkit"] = make_key("never")
    expiring, mirror.keys["Docker, debian"] = make_key("60d")
    mirror.charts["gpu-operator"].append("v27.1.0 >= 1.31.0-0")
    mirror.charts["dcgm-exporter"].remove("3.1.5")
    mirror.charts["node-problem-detector"].append("2.5.0")
    mirror.kubernetes |= {"1.38": "2028-02-28", "1.36": "2027-07-28"}
    mirror.containerd |= {"2.4": "2028-11-06", "2.2": "2026-12-31"}
    return mirror, [
        ("GF681", "driver branch 625 (625.10.01, in rhel9, ubuntu2404)"),
        ("GF680", "Driver 580 580.200.01 is available in ubuntu2204"),
        (
            "GF680",
            "Driver 620 620.20.02 is available in rhel10; the newest in the catalog is not known",
        ),
        (
            "GF683",
            "nvidia-persistenced 595.91.07 is not in the repository of debian13; it has nvidia-persistence",
        ),
        ("GF680", "Container toolkit 1.21.0"),
        ("GF685", f"The key of container toolkit is {changed}"),
        ("GF685", f"The key of Docker, debian is {expiring}"),
        ("GF686", f"The key {expiring} of Docker, debian expires on 20"),
        ("GF682", "gpu-operator v27.1.0 is available, for Kubernetes >= 1.31.0-0"),
        ("GF684", "dcgm-exporter 3.1.5"),
        ("GF682", "node-problem-detector 2.5.0"),
        ("GF681", "Kubernetes 1.38 (end of life 2028-02-28)"),
        ("GF687", "Kubernetes 1.36 is 2027-07-28; the catalog has 2027-06-28"),
        ("GF681", "containerd 2.4 (end of life 2028-11-06)"),
        ("GF687", "containerd 2.2 is 2026-12-31; the catalog has 2026-11-06"),
    ]
