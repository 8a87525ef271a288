"""The choice of a driver, its reason, and the findings if no driver can be chosen."""

from __future__ import annotations

from datetime import date

import pytest

from gpufleet.core.findings import Severity
from gpufleet.driver.choice import DriverChoice
from gpufleet.driver.resolve import resolve_driver
from gpufleet.driver.settings import DriverSettings
from gpufleet.node.catalog import load_catalog
from tests.unit.driver.catalog_driver_setup import (
    A100,
    B200,
    GB200,
    GH200,
    H100,
    K80,
    L4,
    M60,
    P100,
    T4,
    V100,
    choose,
)

UNKNOWN = 0x4001
FINGERPRINT = "0123456789ABCDEF0123456789ABCDEF01234567"


def codes(choice: DriverChoice, severity: Severity | None = None) -> list[str]:
    return [f.code for f in choice.findings if severity in (None, f.severity)]


@pytest.mark.parametrize(
    ("distribution", "gpu", "branch", "modules"),
    [
        ("ubuntu2204", T4, "580", "open"),
        ("ubuntu2204", A100, "580", "open"),
        ("ubuntu2204", V100, "580", "proprietary"),
        ("ubuntu2404", M60, "580", "proprietary"),
        ("ubuntu2404", P100, "580", "proprietary"),
        ("ubuntu2404", B200, "580", "open"),
        ("ubuntu2404", GH200, "580", "open"),
        ("ubuntu2604", L4, "595", "open"),
        ("ubuntu2004", K80, "470", "proprietary"),
        ("ubuntu1804", T4, "525", "proprietary"),
        ("debian11", T4, "570", "open"),
        ("debian12", H100, "580", "open"),
        ("debian13", H100, "595", "open"),
        ("rhel7", T4, "550", "proprietary"),
        ("rhel8", T4, "580", "open"),
        ("rhel9", V100, "580", "proprietary"),
        ("amzn2023", T4, "580", "open"),
        ("sles15", T4, "580", "open"),
    ],
)
def test_default_choice(distribution: str, gpu: int, branch: str, modules: str) -> None:
    choice = choose(distribution, gpu, kernel="3.10.0-1160" if distribution == "rhel7" else "6.1")
    assert not choice.blocked, choice.findings
    assert (choice.branch, choice.modules) == (branch, modules)
    assert choice.version is None
    assert choice.newest_known.startswith(branch)
    assert choice.packages.install
    assert choice.repository is not None
    assert f"Branch {branch}" in choice.reason


def test_rhel7_ends_with_550_and_says_what_to_do() -> None:
    choice = choose("rhel7", T4, branch="580")
    finding = choice.findings[0]
    assert (finding.code, finding.severity) == ("GF112", Severity.BLOCKER)
    assert finding.message == (
        "Driver branch 580 cannot be installed on RHEL 7. NVIDIA's last branch for RHEL 7 is 550 "
        "(550.163.01, end of life since 2025-06)."
    )
    assert finding.remedy.startswith('Set driver_branch = "550" for this host')
    assert choice.packages.install == ()


@pytest.mark.parametrize(
    ("distribution", "gpu", "settings", "remedy"),
    [
        ("debian12", B200, {"source": "distro"}, 'Set driver_source = "nvidia" for this host.'),
        ("ubuntu2604", V100, {"build": "precompiled"}, 'Set driver_source = "distro" for this'),
        (
            "debian12",
            B200,
            {"source": "distro", "modules": "proprietary"},
            'Set driver_source = "nvidia" and remove driver_modules and driver_build for this host',
        ),
    ],
)
def test_the_setting_that_helps_is_named(
    distribution: str, gpu: int, settings: dict[str, str], remedy: str
) -> None:
    choice = choose(distribution, gpu, **settings)
    (finding,) = [each for each in choice.findings if each.code == "GF115"]
    assert finding.remedy.startswith(remedy)


def test_rhel7_warns_of_everything_that_is_over() -> None:
    choice = choose("rhel7", T4)
    assert set(codes(choice, Severity.WARNING)) == {"GF103", "GF120", "GF121"}
    assert choice.newest_known == "550.163.01"


@pytest.mark.parametrize("version", ["550.163.02", "550.200", "580.95.05"])
def test_rhel7_refuses_versions_above_its_ceiling(version: str) -> None:
    choice = choose("rhel7", T4, version=version)
    assert choice.blocked
    assert codes(choice, Severity.BLOCKER)[0] == "GF112"


def test_rhel7_takes_its_last_version() -> None:
    choice = choose("rhel7", T4, version="550.163.01", kernel="3.10.0-1160.119.1.el7.x86_64")
    assert not choice.blocked
    assert choice.version == "550.163.01"
    assert choice.packages.headers == ("kernel-devel-3.10.0-1160.119.1.el7.x86_64",)
    assert "nvidia-driver-latest-dkms-NVML" in choice.packages.install


def test_rhel7_has_no_open_modules() -> None:
    choice = choose("rhel7", T4, modules="open")
    (finding,) = [f for f in choice.findings if f.blocks]
    assert finding.code == "GF130"
    assert "kernel 3.10" in finding.message


@pytest.mark.parametrize(
    ("gpu", "branch", "last"), [(V100, "590", "580"), (P100, "595", "580"), (K80, "535", "470")]
)
def test_a_branch_that_dropped_the_gpu_is_refused(gpu: int, branch: str, last: str) -> None:
    choice = choose("rhel8", gpu, branch=branch)
    blockers = [f for f in choice.findings if f.blocks]
    assert [f.code for f in blockers] == ["GF112"]
    assert f"The last branch for it is {last}." in blockers[0].message
    assert f'driver_branch = "{last}"' in blockers[0].remedy


def test_blackwell_needs_570_and_open_modules() -> None:
    assert codes(choose("ubuntu2404", B200, branch="550"), Severity.BLOCKER) == ["GF112"]
    choice = choose("ubuntu2404", B200, modules="proprietary")
    assert codes(choice, Severity.BLOCKER) == ["GF130"]
    assert "B200 (Blackwell) cannot use them" in choice.findings[0].message


def test_open_modules_are_refused_for_volta() -> None:
    assert codes(choose("ubuntu2204", V100, modules="open"), Severity.BLOCKER) == ["GF130"]


def test_from_615_there_are_only_open_modules() -> None:
    assert codes(choose("ubuntu2404", T4, branch="615", modules="proprietary")) == ["GF130"]
    assert choose("ubuntu2404", T4, branch="615").modules == "open"


def test_old_branches_default_to_proprietary_modules() -> None:
    assert choose("ubuntu2404", T4, branch="550").modules == "proprietary"
    assert choose("ubuntu2404", T4, branch="550", modules="open").modules == "open"


def test_an_old_kernel_excludes_open_modules() -> None:
    choice = choose("rhel8", T4, kernel="4.14.0-1.x86_64")
    assert (choice.modules, choice.blocked) == ("proprietary", False)


def test_gpus_of_several_generations() -> None:
    served = choose("ubuntu2204", V100, H100)
    assert (served.branch, served.modules, served.blocked) == ("580", "proprietary", False)
    assert "GF117" in codes(served)
    assert codes(choose("ubuntu2204", V100, B200), Severity.BLOCKER) == ["GF115"]


def test_an_unknown_gpu_is_taken_for_a_newer_one() -> None:
    choice = choose("ubuntu2204", UNKNOWN)
    assert (choice.modules, choice.blocked) == ("open", False)
    (finding,) = choice.findings
    assert (finding.code, finding.severity) == ("GF133", Severity.INFO)
    assert "10de:4001" in finding.message


def test_no_gpu_named_is_no_problem() -> None:
    assert choose("ubuntu2204").branch == "580"


def test_version_and_branch_must_agree() -> None:
    assert codes(choose("ubuntu2204", T4, branch="550", version="580.95.05"))[0] == "GF203"
    choice = choose("ubuntu2204", T4, branch="580", version="580.178.04")
    assert (choice.version, choice.findings) == ("580.178.04", ())


def test_versions_are_compared_as_numbers() -> None:
    # as text, 580.95.05 is greater than 580.159.03
    assert "GF120" in codes(choose("ubuntu2204", T4, version="580.95.05"))
    assert "GF120" not in codes(choose("ubuntu2204", T4, version="580.178.04"))


def test_an_incomplete_version_blocks_and_the_repository_judges_a_whole_one() -> None:
    (whole, *_) = choose("ubuntu2204", T4, version="580.199.99").findings
    assert (whole.code, whole.blocks) == ("GF111", False)
    assert "--check" in whole.remedy
    assert "driver_allow_unknown" not in whole.remedy, "it is not needed"
    assert choose("ubuntu2204", T4, version="580.199").blocked
    for exact, known in (("580.95", "580.95.05"), ("580.17", "580.173.02, 580.178.04")):
        (finding, *_) = choose("ubuntu2204", T4, version=exact).findings
        assert (finding.code, finding.blocks) == ("GF111", True)
        assert f"which has {known}." in finding.message
    choice = choose("ubuntu2204", T4, version="580.199", allow_unknown=True)
    assert not choice.blocked
    (finding,) = choice.findings
    assert finding.code == "GF111"
    assert str(load_catalog().branches.as_of) in finding.message


@pytest.mark.parametrize("gpu", [0x1B38, 0x13F2, V100])
def test_the_last_branch_of_old_gpus_is_580(gpu: int) -> None:
    """620 has no proprietary modules, which Maxwell, Pascal and Volta need."""
    for branch in ("595", "615", "620"):
        assert choose("ubuntu2204", gpu, branch=branch).blocked
    kept = choose("ubuntu2204", gpu, branch="580")
    assert (kept.blocked, kept.modules) == (False, "proprietary")


def test_branch_620_has_open_modules_alone() -> None:
    choice = choose("ubuntu2204", T4, branch="620")
    known = load_catalog().branch(620)
    assert known is not None
    newest = known.newest  # "" until a version is seen
    assert (choice.blocked, choice.modules, choice.newest_known) == (False, "open", newest)
    assert choose("ubuntu2204", T4, branch="620", modules="proprietary").blocked


def test_ends_of_life_as_nvidia_has_them() -> None:
    over = {b.branch: str(b.end_of_life) for b in load_catalog().branches.branches}
    wanted = {535: "2026-06-30", 580: "2028-06-30", 595: "2027-03-31", 610: "2026-08-31"}
    assert {branch: over[branch] for branch in wanted} == wanted


def test_unknown_branches() -> None:
    assert codes(choose("ubuntu2204", T4, branch="585"))[0] == "GF111"
    swapped = choose("ubuntu2204", T4, branch="850")
    assert (swapped.blocked, codes(swapped)[0]) == (True, "GF111")
    newer = choose("ubuntu2204", T4, branch="799", allow_unknown=True)
    assert (newer.blocked, codes(newer)[0]) == (False, "GF111")
    assert "nvidia-dkms-open" in newer.packages.install


@pytest.mark.parametrize(
    ("distribution", "architecture", "code"),
    [("arch", "x86_64", "GF101"), ("debian12", "ppc64le", "GF115"), ("rhel7", "aarch64", "GF115")],
)
def test_unsupported_platforms(distribution: str, architecture: str, code: str) -> None:
    choice = choose(distribution, T4, architecture=architecture)
    assert codes(choice) == [code]
    assert (choice.packages.install, choice.repository) == ((), None)


def test_end_of_life_depends_on_the_day_only_for_warnings() -> None:
    later = resolve_driver(
        load_catalog(),
        distribution=load_catalog().distribution("ubuntu2204") or "ubuntu2204",
        architecture="x86_64",
        kernel="6.8.0-40-generic",
        devices=[T4],
        nvswitch=False,
        settings=DriverSettings(),
        today=date(2031, 1, 1),
    )
    assert later.branch == "580"
    assert {"GF103", "GF121"} <= set(codes(later, Severity.WARNING))


def test_distro_source_on_debian() -> None:
    choice = choose("debian12", T4, source="distro")
    assert (choice.branch, choice.modules, choice.repository) == ("535", "proprietary", None)
    assert choice.components == ("contrib", "non-free", "non-free-firmware")
    assert {"nvidia-kernel-dkms", "nvidia-smi", "libcuda1"} <= set(choice.packages.install)
    assert "nvidia-persistenced" in choice.packages.companions
    assert choice.packages.module == "nvidia-current"
    assert codes(choose("debian12", T4, source="distro", branch="580")) == ["GF112"]
    opened = choose("debian12", T4, source="distro", modules="open")
    assert codes(opened, Severity.BLOCKER) == ["GF130"]
    assert "535.261.03" in opened.findings[0].message


def test_distro_source_on_ubuntu() -> None:
    choice = choose("ubuntu2404", T4, source="distro", build="precompiled")
    assert not choice.blocked
    assert "linux-modules-nvidia-580-server-open-generic" in choice.packages.companions
    assert "linux-modules-nvidia-580-server-open-6.8.0-40-generic" in choice.packages.companions
    assert "nvidia-utils-580-server" in choice.packages.install
    assert choice.packages.build == ()


def test_a_branch_of_transitional_packages_is_not_offered() -> None:
    choice = choose("ubuntu2404", T4, source="distro", branch="570")
    assert codes(choice, Severity.BLOCKER) == ["GF112"]
    assert 'driver_branch = "580"' in choice.findings[0].remedy
    assert not choose("ubuntu2404", T4, branch="570").blocked


def test_distro_source_where_there_is_none() -> None:
    assert codes(choose("rhel9", T4, source="distro")) == ["GF115"]


def test_precompiled_modules() -> None:
    assert choose("ubuntu2204", T4, build="precompiled", source="distro").build == "precompiled"
    for distribution in ("ubuntu2204", "rhel9"):
        choice = choose(distribution, T4, build="precompiled")
        assert codes(choice, Severity.BLOCKER) == ["GF130"]
    asked = choose("ubuntu2204", T4, build="precompiled", branch="580")
    assert codes(asked, Severity.BLOCKER) == ["GF130"]


def test_a_key_without_a_known_fingerprint_is_not_trusted() -> None:
    choice = choose("rhel10", T4)
    assert codes(choice, Severity.BLOCKER) == ["GF105"]
    own = choose("rhel10", T4, repo_key_fingerprint=FINGERPRINT)
    assert not own.blocked
    assert own.repository is not None
    assert own.repository.key_fingerprints == (FINGERPRINT,)


def test_repository_of_a_mirror() -> None:
    repository = choose(
        "ubuntu2204", T4, repo_url="https://mirror.example/cuda", repo_key_fingerprint=FINGERPRINT
    ).repository
    assert repository is not None
    assert repository.url == "https://mirror.example/cuda/ubuntu2204/x86_64/"
    assert repository.key_url == "https://mirror.example/cuda/ubuntu2204/x86_64/3bf863cc.pub"
    assert repository.key_fingerprints == (FINGERPRINT,)
    assert repository.file == "/etc/apt/sources.list.d/cuda-ubuntu2204-x86_64.list"
    assert (repository.signed_packages, repository.signed_metadata) == (False, True)


def test_repository_on_arm_servers() -> None:
    repository = choose("rhel9", T4, architecture="aarch64").repository
    assert repository is not None
    assert repository.url.endswith("/rhel9/sbsa/")
    assert repository.name == "cuda-rhel9-sbsa"
    assert repository.file == "/etc/yum.repos.d/cuda-rhel9.repo"
    assert (repository.signed_packages, repository.signed_metadata) == (True, False)


@pytest.mark.parametrize(
    ("distribution", "branch", "name"),
    [
        ("ubuntu2204", "550", "nvidia-fabricmanager-550"),
        ("ubuntu2204", "580", "nvidia-fabricmanager"),
        ("rhel9", "570", "nvidia-fabric-manager"),
        ("rhel9", "580", "nvidia-fabricmanager"),
    ],
)
def test_fabric_manager(distribution: str, branch: str, name: str) -> None:
    assert choose(distribution, A100, branch=branch).packages.fabric_manager == ()
    with_switch = choose(distribution, A100, branch=branch, nvswitch=True)
    assert with_switch.packages.fabric_manager == (name,)


def test_fabric_manager_where_it_cannot_or_need_not_be() -> None:
    distro = choose("debian12", A100, source="distro", nvswitch=True)
    assert codes(distro, Severity.BLOCKER) == ["GF143"]
    off_host = choose("ubuntu2404", GB200, nvswitch=True, architecture="aarch64")
    assert off_host.packages.fabric_manager == ()
    assert "GF144" in codes(off_host)
    assert "GF145" in codes(choose("ubuntu2404", B200))


def test_full_profile_adds_the_desktop() -> None:
    compute = set(choose("ubuntu2204", T4).packages.install)
    full = set(choose("ubuntu2204", T4, profile="full").packages.install)
    assert compute < full
    assert "xserver-xorg-video-nvidia-580" in full - compute
