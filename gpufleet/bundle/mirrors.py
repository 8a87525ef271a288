"""Which key of an inventory points at which folder of a bundle. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence

from gpufleet.bundle.models import BundledRepository, BundleFile, place_of
from gpufleet.core.secrets import plain_urls
from gpufleet.packages.repository import Repository
from gpufleet.packages.transaction import PackageTransaction

# role -> the words of its repository's key URL below what ROLE_repo_url names
WORDS_BELOW = {"driver": 3, "toolkit": 1, "containerd": 2, "kubernetes": 5}


def key_file(repository: Repository, data: bytes) -> BundleFile:
    """The key of a repository, at its address."""
    digest, url = hashlib.sha256(data).hexdigest(), repository.key_url
    return BundleFile(place_of(url), digest, len(data), plain_urls(url), "key")


def bundled_repositories(
    asked: Sequence[PackageTransaction], files: Iterable[BundleFile]
) -> tuple[BundledRepository, ...]:
    """The repositories of the roles, with the key of the inventory for each; then the folders of
    others that have a package."""
    ours = list(_of_roles(asked))
    covered = tuple(f"{each.path}/" for each in ours)
    others = {
        file.source: file for file in files
        if file.sort == "metadata" and not file.path.startswith(covered)
    }  # fmt: skip
    tops = {_top(file.path): _top(url) for url, file in others.items()}
    return (*ours, *(BundledRepository(path, url) for path, url in sorted(tops.items())))


def _of_roles(asked: Iterable[PackageTransaction]) -> Iterator[BundledRepository]:
    for each in asked:
        repository, depth = each.repository.repository, WORDS_BELOW.get(each.role)
        if repository and depth:
            url = repository.key_url.rsplit("/", depth)[0]
            yield BundledRepository(place_of(url), plain_urls(url), f"{each.role}_repo_url")


def _top(url: str) -> str:
    """The address of an archive, from that of a file of its metadata."""
    for mark in ("/dists/", "/repodata/"):
        if mark in url:
            return url.partition(mark)[0]
    return url.rpartition("/")[0].removesuffix("/.")
