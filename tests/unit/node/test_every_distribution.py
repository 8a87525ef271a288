"""Every distribution's file and every captured host, without naming one: each must get a plan."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from gpufleet.core.data import read_folder
from gpufleet.core.distributions import Distribution, load_families
from gpufleet.core.entries import Build, Source
from gpufleet.driver.choice import branch_offers, branches_of, package_set
from gpufleet.driver.findings.choice import UNKNOWN_DISTRIBUTION
from gpufleet.driver.role import ROLE as DRIVER
from gpufleet.exporter.role import ROLE as EXPORTER
from gpufleet.facts.distribution import manager_of
from gpufleet.facts.model import Kernel, ManagedFile, NodeFacts, OsRelease
from gpufleet.facts.parse import parse_node_facts
from gpufleet.facts.record import EMPTY_RECORD
from gpufleet.node.catalog import load_catalog
from gpufleet.node.plan import NodePlan, plan_node, plan_steps
from gpufleet.node.settings import load_node_settings
from gpufleet.toolkit.role import ROLE as TOOLKIT
from gpufleet.verify import node as checks
from tests.unit.hosts import bare_host

ROOT = Path(__file__).resolve().parents[3]
CATALOG = load_catalog()
KNOWN = CATALOG.distributions
CAPTURES = sorted((ROOT / "tests/unit/facts/captures").glob("*.txt"))
PROGRAMS = {"apt-get", "dnf", "yum", "zypper"}
BUILDS: tuple[tuple[Source, Build], ...] = (
    ("nvidia", "dkms"),
    ("nvidia", "precompiled"),
    ("distro", "dkms"),
    ("distro", "precompiled"),
)

every = pytest.mark.parametrize("place", KNOWN, ids=lambda place: place.code)


def releases(place: Distribution) -> list[OsRelease]:
    """Possible contents of /etc/os-release on such hosts, with and without a minor version."""
    versions = (place.os.version, f"{place.os.version}.3")
    return [OsRelease(name, version) for name in place.os.ids for version in versions]


def host(place: Distribution) -> NodeFacts:
    """A bare host of a distribution, with an A100 and the newest kernel."""
    architecture = next(iter(place.architectures))
    kernel = Kernel("9.9.0-1-default", architecture, headers=False, secure_boot=False)
    return bare_host(os=releases(place)[0], kernel=kernel, package_manager=place.manager)


def plan(facts: NodeFacts, **data: object) -> NodePlan:
    settings, problems = load_node_settings(data)
    assert settings is not None, problems
    return plan_node(settings, facts, CATALOG, facts.clock)


def test_files_are_named_by_their_code() -> None:
    folder = ROOT / "gpufleet/core/data/distributions"
    assert sorted(path.name for path in folder.iterdir()) == sorted(f"{d.code}.yaml" for d in KNOWN)
    assert len(read_folder("core/distributions")) == len(KNOWN)


@every
def test_a_host_is_of_one_distribution(place: Distribution) -> None:
    for os in releases(place):
        assert os.distribution == place
        assert os.code == place.code


@every
def test_a_host_has_its_own_package_manager(place: Distribution) -> None:
    for os in releases(place):
        found = manager_of(os, place.style, PROGRAMS)
        assert found == place.manager
        assert manager_of(os, place.style, ()) is None


@every
def test_the_checks_know_how_packages_are_kept(place: Distribution) -> None:
    by_dpkg = [name in checks._debian_words() for name in place.os.ids]
    assert by_dpkg == [place.style == "deb"] * len(by_dpkg)


@every
def test_sets_of_packages_never_overlap(place: Distribution) -> None:
    sets = [one for one in CATALOG.packages.sets if one.id in place.driver_packages]
    for source, build in BUILDS:
        alike = [one for one in sets if (one.source_kind, one.build) == (source, build)]
        for branch in range(400, 700):
            assert len([one for one in alike if one.covers(branch)]) <= 1, branch


@every
def test_every_set_of_packages_is_used(place: Distribution) -> None:
    used = {
        found.packages.id
        for source, build in BUILDS
        for found in branch_offers(CATALOG, place, source, build)
    }
    assert used == set(place.driver_packages)


@every
def test_every_branch_has_names(place: Distribution) -> None:
    wanted = [b.branch for b in CATALOG.branches.branches if branches_of(place).covers(b.branch)]
    assert wanted
    missing = [b for b in wanted if not package_set(CATALOG, place, "nvidia", "dkms", b)]
    assert missing == []


@every
def test_a_limit_stands_once(place: Distribution) -> None:
    assert not (place.ceiling and place.branches.last)


@every
def test_a_bare_host_gets_a_plan(place: Distribution) -> None:
    found = plan(host(place), exporter_enabled=True, driver_repo_key_fingerprint="A" * 40)
    driver, toolkit = found.of(DRIVER), found.of(TOOLKIT)
    assert driver is not None
    assert driver.packages
    assert driver.transaction.prerequisites
    assert not driver.choice.blocked, driver.choice.reason
    assert toolkit is not None
    assert not toolkit.choice.blocked
    [exporter] = [part for part in found.parts if part.role is EXPORTER]
    assert exporter.plan is not None or exporter.findings


def looked_for() -> str:
    """The regular expression of the packages that the facts command prints."""
    script = (ROOT / "gpufleet/facts/sections/packages.sh").read_text()
    parts = re.findall(r"""^families=['"](?:\$families)?(.+)['"]$""", script, re.MULTILINE)
    assert len(parts) > 3
    return "".join(parts).replace("\\$", "$")


@every
def test_facts_have_the_packages_that_a_role_installs(place: Distribution) -> None:
    """If facts lack a role's packages, the role never converges and installs them on every run."""
    found = plan(
        host(place), exporter_enabled=True, containerd_install="docker", kubernetes_enabled=True
    )
    named = {
        name
        for part in found.parts
        for name in (
            *part.role.main_packages(CATALOG),
            *(part.role.describe(part.plan).get("packages", ()) if part.plan else ()),
        )
    }
    assert len(named) > 4
    assert [name for name in sorted(named) if not re.search(looked_for(), name)] == []


@every
@pytest.mark.parametrize("source", ["nvidia", "distro"])
def test_a_preview_names_every_file_that_is_written(place: Distribution, source: str) -> None:
    listed = ManagedFile("/etc/apt/sources.list", "deb http://archive.example/x suite main\n")
    system = replace(releases(place)[0], codename="suite")
    facts = replace(host(place), os=system, files={listed.path: listed})
    found = plan(facts, exporter_enabled=True, driver_source=source, exporter_mode="docker")
    named = "\n".join(plan_steps(found))
    for part in found.wanted:
        for file in part.role.files(part.plan):
            assert file.path in named, (part.role.name, file.path)
    driver = found.of(DRIVER)
    assert driver is not None
    if driver.components:
        assert driver.components.path in named
    assert bool(driver.components) == bool(driver.choice.components)


@every
@pytest.mark.parametrize("version", ["1.14.0", CATALOG.toolkit.newest])
def test_who_keeps_the_cdi_specification(place: Distribution, version: str) -> None:
    found = plan(host(place), toolkit_cdi=True, toolkit_version=version).of(TOOLKIT)
    assert found is not None
    old = place.systemd and place.systemd.version < CATALOG.toolkit.cdi.refresh_minimum_systemd
    keeper = "generate" if old or version == "1.14.0" else "refresh"
    assert found.cdi.keeper == keeper


@pytest.mark.parametrize("capture", CAPTURES, ids=lambda path: path.stem)
def test_a_captured_host_gets_a_plan(capture: Path) -> None:
    facts = parse_node_facts(capture.read_text("utf-8").splitlines())
    place = facts.distribution
    assert place is not None, facts.os
    assert facts.package_manager == place.manager
    found = plan(replace(facts, provenance=EMPTY_RECORD, pci=bare_host().pci))
    assert UNKNOWN_DISTRIBUTION.code not in {finding.code for finding in found.all_findings}
    driver = found.of(DRIVER)
    assert driver is not None
    assert driver.packages


@pytest.mark.parametrize(
    ("name", "version", "code"),
    [
        ("ubuntu", "23.10", "ubuntu2310"),
        ("centos", "6.10", "rhel6"),
        ("amzn", "2", "amzn2"),
        ("fedora", "42", "fedora42"),
        ("opensuse-leap", "15.6", "opensuse-leap15"),
        ("debian", "", "debian"),
        ("ubuntu", "22.10", "ubuntu2210"),
        ("debian", "120", "debian120"),
    ],
)
def test_what_is_not_known_has_a_code_like_its_relatives(
    name: str, version: str, code: str
) -> None:
    assert OsRelease(name, version).distribution is None
    assert OsRelease(name, version).code == code


@pytest.mark.parametrize(
    ("os", "programs", "manager"),
    [
        (OsRelease("centos", "7", ("rhel", "fedora")), {"yum", "dnf"}, "yum"),
        (OsRelease("centos", "7", ("rhel", "fedora")), {"dnf"}, None),
        (OsRelease("rocky", "9.4", ("rhel", "centos", "fedora")), {"yum"}, "yum"),
        (OsRelease("fedora", "42"), {"yum", "dnf"}, "dnf"),
        (OsRelease("opensuse-leap", "15.6", ("suse", "opensuse")), {"zypper", "dnf"}, "zypper"),
        (OsRelease("sles", "15.6", ("suse",)), {"dnf"}, "dnf"),
        (OsRelease("photon", "5.0"), {"yum", "zypper"}, "yum"),
    ],
)
def test_the_manager_that_owns_the_packages(
    os: OsRelease, programs: set[str], manager: str | None
) -> None:
    assert manager_of(os, "rpm", programs) == manager


def test_code_names_no_distribution() -> None:
    """Facts about a distribution belong in its file. Words in messages are not decisions."""
    names = {name for place in KNOWN for name in (place.code, *place.os.ids)} - {"ol"}
    names |= {word for family in load_families() for word in family.words}
    name = "|".join(sorted(map(re.escape, names)))
    literal = re.compile(rf"""["'*|](?:{name})["'*|)]|\((?:{name})\|""")
    code = [
        *ROOT.glob("gpufleet/**/*.py"),
        *ROOT.glob("gpufleet/**/*.sh"),
        *ROOT.glob("roles/**/*.py"),
    ]
    found = {
        str(path.relative_to(ROOT)): match.group()
        for path in code
        if (match := literal.search(path.read_text()))
    }
    assert found == {}
