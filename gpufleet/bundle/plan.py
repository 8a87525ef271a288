"""Packages and repositories that a bundle needs for the plan of a host. Pure."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from gpufleet.bundle.models import BundledRepository, BundleFile, LackingItem, place_of
from gpufleet.containerd.models import ContainerdEntry
from gpufleet.core.secrets import plain_urls
from gpufleet.facts.model import NodeFacts
from gpufleet.facts.record import EMPTY_RECORD
from gpufleet.kubernetes.models import Kubernetes
from gpufleet.kubernetes.notes import JOINED
from gpufleet.kubernetes.settings import KubernetesSettings
from gpufleet.node.plan import NodePlan
from gpufleet.packages.repository import Repository
from gpufleet.packages.transaction import PackageTransaction
from gpufleet.role.listing import node_roles


def bare_facts(facts: NodeFacts) -> NodeFacts:
    """The facts of the same host before gpufleet installed anything. Sources, and runtimes of
    others with their configuration stay. A node keeps its version of Kubernetes."""
    node = JOINED in facts.cluster_host.paths
    ours = {"containerd"} if facts.provenance.entry(ContainerdEntry).packages else set()
    return replace(
        facts,
        runtimes={name: each for name, each in facts.runtimes.items() if name not in ours},
        kernel=replace(facts.kernel, headers=False),
        modules={},
        loaded_flavour=None,
        module_on_disk=None,
        listed=None,
        library=None,
        dkms=(),
        packages={
            name: each for name, each in facts.packages.items() if node and name == "kubelet"
        },
        holds=frozenset(),
        broken="",
        gpu_processes=(),
        collectors=(),
        gpu_pods=0,
        gpu_containers=0,
        provenance=EMPTY_RECORD,
        foreign_driver="",
        driver_files=(),
    )


def planned_transactions(plan: NodePlan) -> tuple[PackageTransaction, ...]:
    """The transactions of all roles that install packages from a repository."""
    return tuple(each for each in plan.transactions if each.packages)


def images_on_host(plan: NodePlan) -> tuple[LackingItem, ...]:
    """Images that docker pulls on the host: a bundle lacks them."""
    described = (part.role.describe(part.plan).get("image") for part in plan.wanted)
    remedy = 'Mirror it and set exporter_image, or install packages: exporter_mode = "systemd".'
    why = "docker pulls it on hosts"
    return tuple(LackingItem(f"image {image}", why, remedy) for image in described if image)


def cluster_images(
    listed: Sequence[str], settings: KubernetesSettings, known: Kubernetes
) -> tuple[str, ...]:
    """The images of a node that the plan makes. `listed`: by its kubeadm."""
    flannel, tag = known.flannel, settings.etcd_tag
    images = set(listed)
    if tag:
        images = {re.sub(r"(?<=/etcd:).*", tag, each) for each in images}
    if settings.network == "flannel":
        images |= {f"{flannel.image}:{flannel.version}", flannel.plugin}
    return tuple(sorted(images))


def own_packages(facts: NodeFacts, asked: Sequence[PackageTransaction]) -> tuple[str, ...]:
    """Packages on the host that a host without gpufleet's work lacks: those that it added, and
    those that the plan installs."""
    record = facts.provenance
    added = {name for role in node_roles() for name in record.entry(role.entry).added}
    planned = {name for each in asked for name in each.packages}
    return tuple(sorted(added | planned))


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


def closure_words(chosen: PackageTransaction) -> tuple[str, ...]:
    """The packages of a transaction for its package manager: NAME, or NAME and version with apt's
    `=` or yum's `-`."""
    versions = (_word(name, version, chosen.manager) for name, version in chosen.install)
    system = chosen.facts.distribution
    locks = chosen.manager != "apt" and system and system.version_lock
    lock = (system.version_lock,) if system and locks else ()
    return (*versions, *chosen.companions, *chosen.prerequisites, *lock)


CHANGED_BY_UPGRADE = ("driver", "toolkit")  # roles whose packages `gpufleet upgrade` changes


@dataclass(frozen=True, slots=True)
class PresentPackages:
    """Installed packages that a transaction would replace, for the package manager: an upgrade
    fetches them too, for a roll-back. `words`: NAME and version, as in `closure_words`."""

    role: str
    names: tuple[str, ...]
    words: tuple[str, ...]


def present_packages(
    resolved: Sequence[PackageTransaction], facts: NodeFacts
) -> tuple[PresentPackages, ...]:
    """The installed packages of driver and toolkit whose versions are not the planned ones."""
    found = []
    for each in resolved:
        planned, known = dict(each.install), {*each.packages, *each.companions}
        there = {
            name: package.version
            for name, package in sorted(facts.packages.items())
            if package.state == "installed"
            and (name in known or each.may_remove(name))
            and planned.get(name) != package.version
        }
        if each.role in CHANGED_BY_UPGRADE and there.keys() - {*each.companions}:
            words = (_word(name, there[name], each.manager) for name in there)
            found.append(PresentPackages(each.role, tuple(there), tuple(words)))
    return tuple(found)


def _word(name: str, version: str, manager: str) -> str:
    """yum 3 does not accept an epoch without an architecture."""
    return f"{name}={version}" if manager == "apt" else f"{name}-{version.split(':')[-1]}"


def _top(url: str) -> str:
    """The address of an archive, from that of a file of its metadata."""
    for mark in ("/dists/", "/repodata/"):
        if mark in url:
            return url.partition(mark)[0]
    return url.rpartition("/")[0].removesuffix("/.")
