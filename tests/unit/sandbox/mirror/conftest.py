"""The mirror's repositories, with small fakes of programs that take minutes to fetch or build."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from gpufleet_sandbox.machine.kernels import KERNELS
from gpufleet_sandbox.mirror.contents import contents
from gpufleet_sandbox.mirror.gotools import PROGRAMS
from gpufleet_sandbox.mirror.layout import extra_files, repositories
from gpufleet_sandbox.mirror.model import Package, Repository
from gpufleet_sandbox.mirror.repositories import write_all
from gpufleet_sandbox.mirror.signing import KeyRing, key_ring

TOOLS = ("apt-ftparchive", "createrepo_c", "dpkg-deb", "gcc", "gpg", "rpmbuild", "rpmsign")
# One of every kind of repository: path, and a part of the file names of its packages.
WRITTEN = {
    "compute/cuda/repos/ubuntu2204/x86_64": "580.1",
    "compute/cuda/repos/rhel7/x86_64": "550.163.01",
    "libnvidia-container/stable/deb/amd64": "",
    "libnvidia-container/stable/rpm/x86_64": "",
}


@pytest.fixture(scope="session")
def ring(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KeyRing]:
    missing = [tool for tool in TOOLS if shutil.which(tool) is None]
    if missing:
        pytest.skip(
            f"building the mirror needs {', '.join(missing)}: see scripts/debian-packages.txt"
        )
    made = key_ring(tmp_path_factory.mktemp("keys") / "gnupg")
    yield made
    made.close()


@pytest.fixture(scope="session")
def found(ring: KeyRing, tmp_path_factory: pytest.TempPathFactory) -> list[Repository]:
    """Every repository of the mirror, as data."""
    work = tmp_path_factory.mktemp("work")
    programs = {}
    for version in contents()["toolkit"]:
        programs[version] = work / version
        programs[version].mkdir()
        for name in PROGRAMS:
            (programs[version] / name).write_text(f"#!/bin/sh\necho {name} {version}\n")
    kernels = work / "kernels"
    for kernel in KERNELS:
        (kernels / kernel.release).mkdir(parents=True)
        (kernels / kernel.release / "modules.order").touch()
    smi = work / "nvidia-smi"
    smi.write_text("#!/bin/sh\n")
    return repositories(work, smi, kernels, programs, ring.public("vendor", armor=False))


@pytest.fixture(scope="session")
def by_path(found: list[Repository]) -> dict[str, dict[str, list[Package]]]:
    """Path of a repository -> name of a package -> its versions."""
    listed: dict[str, dict[str, list[Package]]] = {}
    for repository in found:
        names = listed.setdefault(repository.path, {})
        for package in repository.packages:
            names.setdefault(package.name, []).append(package)
    return listed


@pytest.fixture(scope="session")
def tree(found: list[Repository], ring: KeyRing, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A part of the tree, on disk and signed."""
    folder = tmp_path_factory.mktemp("tree")
    some = [
        replace(r, packages=tuple(p for p in r.packages if WRITTEN[r.path] in p.filename))
        for r in found
        if r.path in WRITTEN
    ]
    write_all(some, folder / "tree", ring, folder / "packages")
    for path, content in extra_files(ring.public("vendor")).items():
        (folder / "tree" / path).write_bytes(content)
    return folder / "tree"
