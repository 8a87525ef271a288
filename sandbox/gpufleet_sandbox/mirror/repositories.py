"""Write repositories: packages, index, signatures, and the alternatives for faults."""

from __future__ import annotations

import gzip
import os
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from gpufleet_sandbox.mirror import debs, rpms
from gpufleet_sandbox.mirror.model import Package, Repository
from gpufleet_sandbox.mirror.serve import ALTERNATIVES
from gpufleet_sandbox.mirror.signing import KeyRing
from gpufleet_sandbox.process import run

# The key that signs the files that a fault serves instead of the right ones.
FAULT_KEYS = {"wrong-signature": "other", "expired-key": "expired"}


def write_all(repositories: list[Repository], tree: Path, ring: KeyRing, packages: Path) -> None:
    """Build every package once (under `packages`), and write every repository of the tree."""
    unique = {(p.format, p.filename, id(p)): p for r in repositories for p in r.packages}
    built: dict[int, Path] = {}
    with ThreadPoolExecutor(max_workers=(os.cpu_count() or 2) + 1) as pool:
        for number, package in enumerate(unique.values()):
            folder = packages / str(number)
            folder.mkdir(parents=True)
            built[id(package)] = folder
        writers: dict[str, Callable[[Package, Path], Path]] = {"deb": debs.write, "rpm": rpms.write}
        for package, path in pool.map(
            lambda p: (p, writers[p.format](p, built[id(p)])), list(unique.values())
        ):
            built[id(package)] = path
        for done in pool.map(
            lambda r: write(r, tree, ring, [built[id(p)] for p in r.packages]), repositories
        ):
            assert done.is_dir()


def write(repository: Repository, tree: Path, ring: KeyRing, packages: list[Path]) -> Path:
    """Write one repository below `tree` from built packages. Returns its folder."""
    folder = tree / repository.path
    folder.mkdir(parents=True)
    for package in packages:
        (folder / package.name).hardlink_to(package)
    (folder / repository.key_file).write_bytes(ring.public(repository.key))
    for name, text in repository.extra.items():
        (folder / name).write_text(text)
    if repository.format == "deb":
        _index_debs(repository, folder)
        _sign_release(folder, folder, ring, repository.key)
    else:
        _sign_and_index_rpms(folder, ring, repository.key, sign=repository.sign_packages)
    if repository.key == "vendor":
        for fault, key in FAULT_KEYS.items():
            _alternative(repository, folder, tree / ALTERNATIVES / fault, ring, key)
    return folder


def _alternative(repository: Repository, folder: Path, root: Path, ring: KeyRing, key: str) -> None:
    """Write the same repository signed by `key`: only the files that differ."""
    target = root / repository.path
    target.mkdir(parents=True)
    if repository.format == "deb":
        _sign_release(folder, target, ring, key)
    elif repository.sign_packages:
        for package in folder.glob("*.rpm"):
            shutil.copyfile(package, target / package.name)
        _sign_and_index_rpms(target, ring, key, sign=True)
    else:
        (target / "repodata").mkdir()
        metadata = target / "repodata" / "repomd.xml.asc"
        ring.sign(key, folder / "repodata" / "repomd.xml", metadata)


def _index_debs(repository: Repository, folder: Path) -> None:
    listing = run(["apt-ftparchive", "packages", "."], cwd=folder).stdout
    # NVIDIA's flat repositories have file names relative to the repository, with "./".
    (folder / "Packages").write_text(listing)
    (folder / "Packages.gz").write_bytes(gzip.compress(listing.encode(), 6, mtime=0))
    options = {"Label": repository.label, "Origin": repository.label, "Architectures": "amd64"}
    words = [
        word
        for name, value in options.items()
        for word in ("-o", f"APT::FTPArchive::Release::{name}={value}")
    ]
    release = run(["apt-ftparchive", *words, "release", "."], cwd=folder).stdout
    (folder / "Release").write_text(release)


def _sign_release(folder: Path, target: Path, ring: KeyRing, key: str) -> None:
    ring.sign(key, folder / "Release", target / "InRelease", clear=True)
    ring.sign(key, folder / "Release", target / "Release.gpg")


def _sign_and_index_rpms(folder: Path, ring: KeyRing, key: str, *, sign: bool) -> None:
    packages = sorted(folder.glob("*.rpm"))
    if sign and packages:
        for package in packages:  # do not write through the hard link to the unsigned file
            copy = package.with_suffix(".signed")
            shutil.copyfile(package, copy)
            copy.replace(package)
        ring.sign_rpms(key, packages)
    run(["createrepo_c", "--quiet", "--general-compress-type=gz", folder])
    ring.sign(key, folder / "repodata" / "repomd.xml", folder / "repodata" / "repomd.xml.asc")
