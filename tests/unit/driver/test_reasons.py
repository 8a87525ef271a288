"""The reasons that the plan gives for a driver, for its modules, and for installing no driver."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.driver.catalog_driver_setup import A100, GB200, H100, K80, T4, V100, choose

VOLTA = "Tesla V100 PCIe 16GB (Volta)"


@pytest.mark.parametrize(
    ("distribution", "gpu", "settings", "reason"),
    [
        ("rhel9", H100, {}, "Open modules: NVIDIA's default from 560."),
        ("rhel9", H100, {"branch": "550"}, "Proprietary modules: NVIDIA's default before 560."),
        ("rhel9", H100, {"modules": "open"}, "Open modules are requested (driver_modules)."),
        ("rhel9", GB200, {}, "Open modules: GB200 (Blackwell) cannot use others."),
        ("rhel9", V100, {}, f"Proprietary modules: {VOLTA} cannot use others."),
        ("ubuntu2004", K80, {}, "Proprietary modules: Tesla K80 (Kepler) cannot use others."),
        ("ubuntu2004", T4, {"branch": "470"}, "Proprietary modules: branch 470 has no others."),
        ("rhel7", T4, {}, "no others for RHEL 7. Its kernel 3.10 is older than the open modules "
                          "support."),
    ],
)  # fmt: skip
def test_why_these_modules(
    distribution: str, gpu: int, settings: dict[str, Any], reason: str
) -> None:
    assert choose(distribution, gpu, **settings).reason.endswith(reason)


@pytest.mark.parametrize(
    ("distribution", "gpus", "settings", "message"),
    [
        ("rhel9", [V100], {"modules": "open"}, f"{VOLTA} cannot use them."),
        ("rhel9", [GB200], {"modules": "proprietary"}, "GB200 (Blackwell) cannot use them."),
        ("rhel9", [A100], {"modules": "open", "kernel": "3.10.0-1"},
         "kernel 3.10.0-1 is older than 4.15."),
        ("rhel9", [GB200], {"branch": "580", "kernel": "3.10.0-1"},
         "Open: kernel 3.10.0-1 is older than 4.15. Proprietary: GB200 (Blackwell) cannot use "
         "them."),
        ("rhel9", [GB200], {"branch": "535"},
         "Driver branch 535 cannot be installed on a host with GB200"),
        ("debian12", [H100], {"source": "distro", "branch": "580"},
         "cannot be installed on Debian 12. Its archive has branches 535."),
        ("debian12", [H100], {"build": "precompiled"},
         "Kernel modules that are precompiled and open cannot be used: there are none"),
        ("debian12", [H100], {"build": "precompiled", "branch": "580"},
         "Kernel modules that are precompiled cannot be used: there are none of branch 580"),
        ("ubuntu2204", [H100], {"branch": "470"},
         "NVIDIA's first branch for Ubuntu 22.04 is 515."),
        ("rhel9", [V100, GB200], {}, "no single driver supports all of its GPUs"),
        ("rhel9", [K80, H100], {},
         "NVIDIA's repository for RHEL 9, dkms, any modules; Tesla K80 (Kepler): up to branch 470, "
         "proprietary modules; H100 SXM5 80GB (Hopper): from branch 520, open or proprietary "
         "modules."),
    ],
)  # fmt: skip
def test_why_no_driver(
    distribution: str, gpus: list[int], settings: dict[str, Any], message: str
) -> None:
    choice = choose(distribution, *gpus, **settings)
    assert choice.blocked
    assert any(message in finding.message for finding in choice.findings)


@pytest.mark.parametrize(
    ("distribution", "gpu", "settings", "remedy"),
    [
        ("rhel7", T4, {}, "No branch for this host still gets fixes: plan to replace the system "
                          "or the GPUs."),
        ("debian12", V100, {"source": "distro"},
         'Set driver_source = "nvidia" and driver_branch = "580" for this host.'),
        ("rhel9", H100, {"branch": "550"}, 'Set driver_branch = "580" for this host.'),
    ],
)  # fmt: skip
def test_what_to_do_about_a_branch_without_fixes(
    distribution: str, gpu: int, settings: dict[str, Any], remedy: str
) -> None:
    findings = choose(distribution, gpu, **settings).findings
    assert [each.remedy for each in findings if each.code == "GF121"] == [remedy]


@pytest.mark.parametrize(("source", "said"), [("nvidia", True), ("distro", False)])
def test_what_nvidia_dropped_matters_to_its_own_repository(source: str, said: bool) -> None:
    found = choose("debian11", T4, source=source).findings
    assert any(each.code == "GF104" for each in found) is said
