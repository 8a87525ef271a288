"""Compares repositories of drivers with the catalog: branches, versions, package names. Pure."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from difflib import get_close_matches

from gpufleet.catalog import findings
from gpufleet.catalog.models import DataEdit, DriverKinds, Gap, PackageVersions, Reading
from gpufleet.core.distributions import Distribution
from gpufleet.core.entries import Modules
from gpufleet.core.names import list_names
from gpufleet.core.versions import branch_of, version_tuple
from gpufleet.driver.catalog import BOTH, PackageSet
from gpufleet.driver.choice import is_over, package_set
from gpufleet.node.catalog import Catalog

FILE = "driver/branches"
FIRST_BRANCH = 300  # lowest number of a driver branch; packages of other versions are companions
MIN_PACKAGES = 3  # driver packages of one version; fewer are leftovers of it
PACKAGES_OF = "x86_64"  # the architecture whose packages the catalog names
SHOWN_PLACES = 4


@dataclass(frozen=True, slots=True)
class Offered:
    """A repository of drivers: the packages of the driver, by version."""

    place: Distribution
    architecture: str
    url: str
    versions: Mapping[str, frozenset[str]]  # version -> names of packages
    content: PackageVersions  # of the whole repository


def compare_drivers(
    catalog: Catalog, packages: Sequence[Reading], kinds: DriverKinds, today: date
) -> Iterator[Gap]:
    """The gaps of branches.yaml and packages.yaml."""
    read = today.isoformat()
    offers = [_offered(catalog, reading) for reading in packages]
    newest = _newest(offers)
    for branch, version in sorted(newest.items()):
        with_it = [each for each in offers if version in each.versions]
        known = catalog.branch(branch)
        if known is None:
            yield _missing(catalog, version, with_it, kinds, read)
        elif version_tuple(version) > version_tuple(known.newest):
            yield _newer(branch, version, known.newest, with_it, read)
    yield from _gone(catalog, offers, today)


def _offered(catalog: Catalog, reading: Reading) -> Offered:
    place = catalog.distribution(reading.source.about)
    assert place is not None
    found: dict[str, set[str]] = defaultdict(set)
    content: PackageVersions = reading.content
    patterns = [re.compile(each) for each in catalog.family(place.style).patterns]
    for name, versions in content.items():
        if any(pattern.fullmatch(name) for pattern in patterns):
            for version in versions:
                if branch_of(version) >= FIRST_BRANCH and "." in version:
                    found[version].add(name)
    kept = {
        version: frozenset(names) for version, names in found.items() if len(names) >= MIN_PACKAGES
    }
    source = reading.source
    return Offered(place, source.architecture, source.url, kept, content)


def _newest(offers: Iterable[Offered]) -> dict[int, str]:
    """The newest version of each branch."""
    found: dict[int, str] = {}
    for version in {version for offer in offers for version in offer.versions}:
        branch = branch_of(version)
        if version_tuple(version) > version_tuple(found.get(branch, "")):
            found[branch] = version
    return found


def _places(offers: Iterable[Offered]) -> str:
    names = list(dict.fromkeys(offer.place.code for offer in offers))
    return list_names(names, SHOWN_PLACES)


def _missing(
    catalog: Catalog, version: str, offers: Sequence[Offered], kinds: DriverKinds, read: str
) -> Gap:
    """The gap of a new branch. Its kind is left to a person: a long-term or production branch would
    become the choice of every distribution, also of those whose repository does not have it."""
    branch, url = branch_of(version), offers[0].url
    said = f", a {kinds[branch]} branch by NVIDIA's list of releases" if branch in kinds else ""
    what = f"driver branch {branch} ({version}, in {_places(offers)}{said})"
    entry = {
        "branch": branch,
        "kind": "unknown",
        "newest": version,
        "modules": list(_flavours(catalog, version, offers)),
        "source": f"{url} (read {read})",
    }
    finding = findings.ENTRY_OLD(gap=f"The catalog has no {what}", file="branches.yaml")
    return Gap("drivers", finding, url, (DataEdit(FILE, ("branches",), entry, "add"),))


def _flavours(catalog: Catalog, version: str, offers: Iterable[Offered]) -> tuple[Modules, ...]:
    """The flavours of kernel modules that have packages of a version; open if none is known."""
    found: Counter[str] = Counter()
    for offer in offers:
        packages = package_set(catalog, offer.place, "nvidia", "dkms", branch_of(version))
        if packages is None:
            continue
        for flavour in BOTH:
            names = _expected(packages, branch_of(version), flavour, ("dkms",))
            found[flavour] += bool(names & offer.versions[version])
    return tuple(each for each in BOTH if found[each]) or ("open",)


def newer_text(what: str, version: str, places: str, known: str) -> str:
    return f"{what} {version} is available in {places}; the newest in the catalog is {known}"


def _newer(branch: int, version: str, known: str, offers: Sequence[Offered], read: str) -> Gap:
    gap = newer_text(f"Driver {branch}", version, _places(offers), known or "not known")
    finding = findings.ENTRY_OLD(gap=gap, file="branches.yaml")
    entry, url = ("branches", ("branch", str(branch))), offers[0].url
    newest, said = (*entry, "newest"), f"; {version} in {url} (read {read})"
    edits = (
        DataEdit(FILE, newest, "versions", "keep"),  # the file's, which catalog.d may have changed
        DataEdit(FILE, newest, version),
        DataEdit(FILE, (*entry, "source"), said, "append"),
    )
    return Gap("drivers", finding, url, edits)


def _gone(catalog: Catalog, offers: Iterable[Offered], today: date) -> Iterator[Gap]:
    """Packages of the newest version of each branch that have another name or none."""
    found: dict[tuple[str, str, str], list[Offered]] = defaultdict(list)
    for offer in offers:
        ended = offer.place.end_of_life
        if offer.architecture == PACKAGES_OF and not (ended and ended < today):
            for gone in _gone_packages(catalog, offer, today):
                found[gone].append(offer)
    for (name, version, near), places in found.items():
        finding = findings.ENTRY_GONE(
            name=name,
            version=version,
            place=_places(places),
            near=f"; it has {near}" if near else "",
            file="packages.yaml",
        )
        yield Gap("drivers", finding, places[0].url)


def _gone_packages(catalog: Catalog, offer: Offered, today: date) -> Iterator[tuple[str, str, str]]:
    """Name, version, and a similar package of that version which the catalog does not have."""
    for branch, version in sorted(_newest([offer]).items()):
        known = catalog.branch(branch)
        packages = package_set(catalog, offer.place, "nvidia", "dkms", branch)
        if packages is None or (known and is_over(known, today)):
            continue
        there = offer.versions[version]
        modules = known.modules if known else _flavours(catalog, version, [offer])
        known_names = _all_names(packages, branch)
        others = {name for name, each in offer.content.items() if version in each} - known_names
        for name in _absent(packages, modules, branch, offer, there):
            yield name, version, next(iter(get_close_matches(name, others, n=1)), "")


def _absent(
    packages: PackageSet,
    modules: Iterable[Modules],
    branch: int,
    offer: Offered,
    there: frozenset[str],
) -> list[str]:
    """Names of the catalog that a repository does not have in this version. A flavour without any
    kernel module package is left out: not every repository has both."""
    found: set[str] = set()
    flavours = set(modules) & set(offer.place.modules)
    for flavour in flavours:
        own = _expected(packages, branch, flavour, ("kernel", "dkms"), common=False)
        if own & there or len(flavours) == 1:
            found |= _expected(packages, branch, flavour, ("kernel", "dkms", "userland")) - there
    return sorted(found)


def _expected(
    packages: PackageSet,
    branch: int,
    flavour: Modules,
    roles: Sequence[str],
    *,
    common: bool = True,
) -> set[str]:
    """Names of packages of a flavour. `common`: with those of every flavour."""
    return {
        name.replace("{branch}", str(branch))
        for group in packages.groups
        if group.role in roles
        and group.covers(branch)
        and (group.modules == flavour or (common and group.modules is None))
        for name in group.names
        if "{" not in name.replace("{branch}", "")
    }


def _all_names(packages: PackageSet, branch: int) -> set[str]:
    roles = ("dkms", "kernel", "userland", "desktop")
    return {name for flavour in BOTH for name in _expected(packages, branch, flavour, roles)}
