"""The catalog's files are complete, consistent and quick to load."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from itertools import pairwise

import pytest
from pydantic import BaseModel, ValidationError

from gpufleet.core.distributions import Distribution
from gpufleet.core.entries import Sourced
from gpufleet.core.versions import branch_of, version_tuple
from gpufleet.driver.catalog import PackageSet
from gpufleet.node.catalog import Catalog, load_catalog

CATALOG = load_catalog()
TOOLKIT_NAMES = (
    "nvidia-container-toolkit",
    "nvidia-container-toolkit-base",
    "nvidia-container-runtime",
    "libnvidia-container1",
    "libnvidia-container-tools",
    "libnvidia-container-devel",
    "nvidia-docker2",
    "nvidia-ctk",
)
OTHERS = (
    "nvidia-cuda-toolkit",
    "nvidia-prime",
    "nvidia-driver-pinning-580",
    "nvidia-driver-assistant",
    "nvidia-driver-local-repo-ubuntu2204-550.54.15",
    "cuda-toolkit-12-8",
    "cuda-keyring",
    "datacenter-gpu-manager-4-core",
    "linux-headers-6.8.0-40-generic",
    "libnvidia-egl-wayland1",
    "nvidia-cudnn",
)


def _models(model: BaseModel) -> Iterator[BaseModel]:
    yield model
    for value in (getattr(model, name) for name in type(model).model_fields):
        for item in value if isinstance(value, tuple) else (value,):
            if isinstance(item, BaseModel):
                yield from _models(item)


def test_every_sourced_entry_names_its_source() -> None:
    entries = [entry for entry in _models(CATALOG) if isinstance(entry, Sourced)]
    assert len(entries) > 100
    assert [entry for entry in entries if not entry.source.strip()] == []


def test_an_unknown_key_is_refused() -> None:
    with pytest.raises(ValidationError, match="colour"):
        Distribution.model_validate({"code": "x", "colour": "red"})


def test_loading_is_quick_and_happens_once() -> None:
    seconds = []
    for _ in range(5):
        load_catalog.cache_clear()
        started = time.process_time()
        first = load_catalog()
        seconds.append(time.process_time() - started)
    assert min(seconds) < 0.5  # 0.05 s on an idle machine
    assert load_catalog() is first


def test_codes_ids_and_numbers_are_unique() -> None:
    for values in (
        [d.code for d in CATALOG.distributions],
        [b.branch for b in CATALOG.branches.branches],
        [g.id for g in CATALOG.gpus.gpus],
        [s.id for s in CATALOG.packages.sets],
        [v.version for v in CATALOG.toolkit.versions],
    ):
        assert len(values) == len(set(values))


def test_every_distribution_has_a_key_layout_and_packages() -> None:
    for distribution in CATALOG.distributions:
        assert CATALOG.cuda.key(distribution.key)
        assert any(distribution.manager in x.managers for x in CATALOG.cuda.layouts)
        assert any(distribution.manager in x.managers for x in CATALOG.toolkit.repository.layouts)
        assert distribution.branches.first is not None


def test_every_set_of_packages_is_a_distributions() -> None:
    named = {name for d in CATALOG.distributions for name in d.driver_packages}
    assert named == {one.id for one in CATALOG.packages.sets}


def test_fingerprints_have_forty_digits_and_end_like_the_name_of_the_file() -> None:
    for key in (*CATALOG.cuda.keys, *CATALOG.cuda.revoked):
        for fingerprint in key.fingerprints:
            assert re.fullmatch(r"[0-9A-F]{40}", fingerprint)
            assert fingerprint.endswith(key.file.removesuffix(".pub").upper())


def test_versions_belong_to_their_branch_and_newest_is_newest() -> None:
    for branch in CATALOG.branches.branches:
        known = tuple(filter(None, (branch.newest, *branch.versions)))
        if not known:
            continue  # no version of it has been seen
        assert {branch_of(version) for version in known} == {branch.branch}
        assert max(known, key=version_tuple) == branch.newest
        assert not branch.floor or branch.floor in known
        assert not (branch.floor and branch.insecure)


def test_every_gpu_has_a_generation_and_ranges_do_not_overlap() -> None:
    assert len(CATALOG.gpus.gpus) >= 80
    assert [g for g in CATALOG.gpus.gpus if CATALOG.generation(g.id) is None] == []
    ranges = sorted(r for g in CATALOG.gpus.generations for r in g.ranges)
    for (_, high), (low, _) in pairwise(ranges):
        assert high < low


def _names(packages: PackageSet) -> set[str]:
    groups = (*packages.groups, *packages.depends, *packages.meta, *packages.fabric_manager)
    filled = {
        name.replace("{branch}", "580")
        .replace("{version}", "580.95.05")
        .replace("{kernel}", "6.8.0-40-generic")
        .replace("{flavour}", "generic")
        for group in groups
        for name in group.names
    }
    return filled - {"dnf-plugin-nvidia", "yum-plugin-nvidia"}


@pytest.mark.parametrize("packages", CATALOG.packages.sets, ids=lambda s: s.id)
def test_the_family_recognises_every_driver_package(packages: PackageSet) -> None:
    patterns = CATALOG.family(packages.style).patterns
    names = _names(packages)
    missed = {n for n in names if not any(re.fullmatch(p, n) for p in patterns)}
    assert names
    assert missed == set()


@pytest.mark.parametrize("style", ["deb", "rpm"])
@pytest.mark.parametrize("name", [*TOOLKIT_NAMES, *OTHERS])
def test_the_family_recognises_nothing_else(style: str, name: str) -> None:
    family = CATALOG.family("deb" if style == "deb" else "rpm")
    assert [p for p in family.patterns if re.fullmatch(p, name)] == []


@pytest.mark.parametrize(
    "name",
    [
        "nvidia-driver-535",
        "libnvidia-gl-470",
        "nvidia-dkms-550-open",
        "cuda-drivers-565",
        "nvidia-tesla-470-kernel-dkms",
        "firmware-nvidia-tesla-535-gsp",
        "xserver-xorg-video-nvidia-tesla-535",
    ],
)
def test_the_family_holds_packages_of_other_branches(name: str) -> None:
    assert any(re.fullmatch(p, name) for p in CATALOG.family("deb").patterns)


def test_the_pinning_packages_have_a_pattern_of_their_own() -> None:
    (pattern,) = CATALOG.family("deb").pinning
    for name in ("nvidia-driver-pinning-580", "nvidia-driver-pinning-580.173.02"):
        assert re.fullmatch(pattern, name)


def test_fabric_manager_is_named_by_branch() -> None:
    sets = {s.id: s for s in CATALOG.packages.sets}

    def name(set_id: str, branch: int) -> list[str]:
        groups = sets[set_id].fabric_manager
        return [n for g in groups if g.covers(branch) for n in g.names]

    assert name("ubuntu-nvidia-suffixed", 575) == ["nvidia-fabricmanager-{branch}"]
    assert name("ubuntu-nvidia-suffixed", 580) == ["nvidia-fabricmanager"]
    assert name("el-nvidia-560", 575) == ["nvidia-fabric-manager"]
    assert name("el-nvidia-560", 580) == ["nvidia-fabricmanager"]
    assert name("el7-nvidia", 550) == ["nvidia-fabric-manager"]


def test_runtimes_say_from_when_cdi_works() -> None:
    docker, containerd = CATALOG.runtime("docker"), CATALOG.runtime("containerd")
    assert docker is not None
    assert containerd is not None
    assert docker.minimum("cdi") == "25.0.0"
    assert docker.minimum("cdi-default") == "28.2.0"
    assert containerd.minimum("cdi") == "1.7.0"
    assert containerd.minimum("no such feature") == ""
    paths = {c.variant: c.config for c in containerd.configs}
    assert paths["k3s"] == "/var/lib/rancher/k3s/agent/etc/containerd/config.toml"


def test_the_catalog_cannot_be_changed() -> None:
    catalog: Catalog = load_catalog()
    with pytest.raises(ValidationError, match="frozen"):
        catalog.branches.branches[0].branch = 1  # type: ignore[misc]
