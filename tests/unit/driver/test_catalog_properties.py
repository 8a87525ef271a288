"""Any combination of settings gives a choice within the catalog's limits or a blocker."""

from __future__ import annotations

import re
from datetime import date

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpufleet.driver.catalog import PackageSet
from gpufleet.driver.choice import DriverChoice
from gpufleet.driver.resolve import resolve_driver
from gpufleet.driver.settings import DriverSettings
from gpufleet.facts.sections.drivers import LIBRARY_PACKAGES, MODULE_PACKAGES
from gpufleet.node.catalog import Catalog, load_catalog
from gpufleet.toolkit.resolve import resolve_toolkit
from gpufleet.toolkit.settings import ToolkitSettings

pytestmark = pytest.mark.claim(
    "Branch, version, modules and packages fit for every distribution and GPU of the catalog.",
    level=1,
)

CATALOG = load_catalog()
CODES = [d.code for d in CATALOG.distributions]
BRANCHES = [str(b.branch) for b in CATALOG.branches.branches]
VERSIONS = [v for b in CATALOG.branches.branches for v in (b.newest, *b.versions) if v]

versions = st.one_of(
    st.sampled_from(VERSIONS),
    st.builds(
        "{}.{}.{:02d}".format, st.integers(100, 999), st.integers(0, 400), st.integers(0, 99)
    ),
)
driver_settings = st.builds(
    DriverSettings,
    branch=st.one_of(st.none(), st.sampled_from(BRANCHES), st.from_regex(r"\A[0-9]{3}\Z")),
    version=st.one_of(st.none(), st.none(), versions),
    modules=st.sampled_from(["auto", "open", "proprietary"]),
    build=st.sampled_from(["dkms", "dkms", "precompiled"]),
    profile=st.sampled_from(["compute", "full"]),
    source=st.sampled_from(["nvidia", "nvidia", "distro"]),
    repo_url=st.sampled_from([None, "https://mirror.example/cuda"]),
    repo_key_fingerprint=st.sampled_from([None, "A" * 40]),
)
devices = st.lists(
    st.one_of(st.sampled_from([g.id for g in CATALOG.gpus.gpus]), st.integers(0, 0xFFFF)),
    max_size=4,
)
kernels = st.sampled_from(["6.8.0-40-generic", "3.10.0-1160.el7.x86_64", "5.14.21-1.2-default", ""])


def within_limits(
    catalog: Catalog, choice: DriverChoice, code: str, ids: list[int], kernel: str
) -> None:
    """Checks a choice against the catalog's data, without the resolver's own functions."""
    place = next(d for d in catalog.distributions if d.code == code)
    branch = int(choice.branch)
    assert choice.version is None or choice.version.split(".")[0] == choice.branch
    if choice.source == "nvidia":
        last = int(place.ceiling.split(".")[0]) if place.ceiling else place.branches.last
        assert (place.branches.first or 0) <= branch <= (last or 9999)
        assert choice.repository is not None
        assert choice.repository.key_fingerprints
    else:
        assert place.archive is not None
        assert branch in {b.branch for b in place.archive.branches}
        assert choice.repository is None
    known = [b for b in catalog.branches.branches if b.branch == branch]
    assert all(choice.modules in b.modules for b in known)
    assert choice.modules in place.modules
    assert choice.modules != "open" or not kernel.startswith("3.")
    for device in ids:
        generation = catalog.generation(device)
        board = catalog.gpu(device)
        if generation:
            assert (generation.first or 0) <= branch <= (generation.last or 9999)
            assert choice.modules in generation.modules
        if board:
            assert branch >= (board.first or 0)
            assert not board.modules or choice.modules in board.modules


@settings(max_examples=300, deadline=None)
@given(
    code=st.one_of(st.sampled_from(CODES), st.text("abz09-", max_size=8)),
    architecture=st.sampled_from(["x86_64", "x86_64", "aarch64", "riscv64"]),
    kernel=kernels,
    ids=devices,
    nvswitch=st.booleans(),
    wanted=driver_settings,
    today=st.dates(date(2024, 1, 1), date(2040, 1, 1)),
)
def test_driver_is_within_limits_or_blocked(
    code: str,
    architecture: str,
    kernel: str,
    ids: list[int],
    nvswitch: bool,
    wanted: DriverSettings,
    today: date,
) -> None:
    choice = resolve_driver(
        CATALOG,
        distribution=CATALOG.distribution(code) or code,
        architecture=architecture,
        kernel=kernel,
        devices=ids,
        nvswitch=nvswitch,
        settings=wanted,
        today=today,
    )
    assert choice.reason
    for finding in choice.findings:
        assert finding.message
        assert finding.remedy
        assert "{" not in finding.message + finding.remedy
    if choice.blocked:
        return
    within_limits(CATALOG, choice, code, ids, kernel)
    packages = choice.packages
    assert packages.install
    assert len(set(packages.install)) == len(packages.install)
    everything = (*packages.install, *packages.fabric_manager, *packages.headers)
    assert all(re.fullmatch(r"[A-Za-z0-9.+_=-]+", name) for name in everything)
    assert all(any(re.fullmatch(p, n) for p in packages.family) for n in packages.install)


@settings(max_examples=150, deadline=None)
@given(
    code=st.one_of(st.sampled_from(CODES), st.text("abz09-", max_size=8)),
    architecture=st.sampled_from(["x86_64", "aarch64", "ppc64le"]),
    version=st.one_of(
        st.none(),
        st.sampled_from([v.version for v in CATALOG.toolkit.versions]),
        st.builds("1.{}.{}".format, st.integers(0, 200), st.integers(0, 30)),
    ),
)
def test_toolkit_is_within_limits_or_blocked(
    code: str, architecture: str, version: str | None
) -> None:
    choice = resolve_toolkit(
        CATALOG,
        distribution=CATALOG.distribution(code) or code,
        architecture=architecture,
        settings=ToolkitSettings(version=version),
    )
    if choice.blocked:
        return
    number = tuple(int(part) for part in choice.version.split("."))
    assert number >= (1, 14, 0)
    assert not (code == "rhel7" and number[:2] == (1, 19))
    assert len(choice.packages) == 4
    assert choice.repository.key_fingerprints
    assert version is None or choice.version == version


@pytest.mark.parametrize("packages", CATALOG.packages.sets, ids=lambda found: found.id)
def test_a_host_with_any_set_is_not_asked_whose_its_driver_is(packages: PackageSet) -> None:
    """The two expressions of the facts command know a package of each set and branch."""
    branches = [b.branch for b in CATALOG.branches.branches if packages.covers(b.branch)]
    assert branches
    for branch in branches:
        names = [
            name.replace("{branch}", str(branch))
            for group in packages.groups
            if group.covers(branch) and "compute" in group.profiles
            for name in group.names
        ]
        for usual in (LIBRARY_PACKAGES, MODULE_PACKAGES):
            assert any(re.match(usual, name) for name in names), (branch, usual)
