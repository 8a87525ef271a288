"""The Kubernetes plan of one host. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from gpufleet.core.distributions import Distribution
from gpufleet.core.findings import Finding
from gpufleet.core.versions import version_tuple
from gpufleet.host.file_write import FileWrite
from gpufleet.kubernetes.archives import ImageArchive
from gpufleet.kubernetes.containerd import CERTS, Required, plan_containerd_cri
from gpufleet.kubernetes.findings import choice, cluster
from gpufleet.kubernetes.images import pending_archives, room_for
from gpufleet.kubernetes.kubeadm import cgroup_driver
from gpufleet.kubernetes.member import (
    HostMember,
    Part,
    check_roster,
    is_package_installed,
    join_sources,
    member_of,
    version_fits,
)
from gpufleet.kubernetes.models import Kubernetes, KubernetesRepository
from gpufleet.kubernetes.notes import JOINED, KUBERNETES_READY_PATH, MODULES, NETWORKED, SYSCTLS
from gpufleet.kubernetes.preflight import check_identity, cluster_obstacles
from gpufleet.kubernetes.settings import KubernetesSettings
from gpufleet.packages.holds import to_hold
from gpufleet.packages.repository import Repository, RepositoryPlan, plan_repository, repository_at
from gpufleet.packages.transaction import PackageTransaction
from gpufleet.role.protocol import RoleContext
from gpufleet.toolkit.runtime_model import RuntimePlan

DEPENDENCIES = ("kubernetes-cni", "cri-tools")  # of the packages


@dataclass(frozen=True, slots=True)
class KubernetesPlan:
    """The steps of the kubernetes role for one host; an empty step does nothing."""

    part: Part
    version: str  # minor, or exact
    before: str | None  # installed version
    transaction: PackageTransaction
    hold: tuple[str, ...]
    wanted_files: tuple[FileWrite, ...]
    files: tuple[FileWrite, ...]  # those that differ on the host
    containerd: RuntimePlan | None
    joined: bool  # the host is a node of the cluster
    network: str  # flannel or none
    networks: bool  # apply the objects of the network
    waits: bool  # the node is to become Ready
    reset: bool  # an earlier run broke off while it joined
    control_plane: str  # name of the host that the others join by
    archives: tuple[ImageArchive, ...]  # image archives to import
    sources: tuple[str, ...]  # control planes that this host can join by, the best first
    leads: bool  # the first control plane; users get its kubeconfig
    initiates: bool  # the cluster begins here
    ignored: tuple[str, ...]  # checks of kubeadm that the settings accept to fail
    api: str  # of kubeadm's configuration

    @property
    def converged(self) -> bool:
        changes = self.containerd is not None and bool(self.containerd.changes)
        steps = self.needed or self.hold or self.files or changes or self.archives
        return self.joined and not (steps or self.networks or self.waits)

    @property
    def repository(self) -> RepositoryPlan:
        return self.transaction.repository

    @property
    def needed(self) -> bool:
        """True if packages are installed or changed."""
        return self.transaction.needed

    def describe(self) -> dict[str, Any]:
        """The plan as data for preflight's JSON."""
        return {
            "part": self.part,
            "version": self.version,
            "before": self.before,
            "packages": list(self.transaction.packages) if self.needed else [],
            "files": [file.path for file in self.files],
            "archives": [archive.path for archive in self.archives],
            "joins": not self.joined,
            "control_plane": self.control_plane,
            "initiates": self.initiates,
        }


def plan_kubernetes(
    settings: KubernetesSettings, context: RoleContext
) -> tuple[KubernetesPlan | None, tuple[Finding, ...]]:
    """The Kubernetes plan of one host, and findings. Never raises."""
    if not settings.enabled:
        return None, ()
    facts, system = context.facts, context.facts.distribution
    known: Kubernetes = context.catalog.kubernetes
    member = member_of(settings, known, context)
    problems = tuple(_problems(member, system, known))
    if system is None or problems:
        return None, problems
    problems = tuple(_obstacles(member, settings, known, context))
    if "containerd" not in facts.runtimes:
        return None, problems
    plan, notes = _plan(member, settings, context, system)
    room = room_for(plan.archives, facts)
    return plan, (*problems, *room, *notes, *plan.repository.findings)


def _obstacles(
    member: HostMember, settings: KubernetesSettings, known: Kubernetes, context: RoleContext
) -> Iterator[Finding]:
    """Findings that stop a host which has a plan."""
    yield from cluster_obstacles(settings, context.facts, known, member)
    yield from check_identity(context)
    yield from check_roster(settings, context, member)
    if member.initiates and JOINED in context.facts.cluster_host.paths:
        yield cluster.PLANE_RESET()
    if member.is_refused:
        yield choice.UPGRADE_REFUSED(installed=member.before, wanted=member.version)


def _plan(
    member: HostMember, settings: KubernetesSettings, context: RoleContext, system: Distribution
) -> tuple[KubernetesPlan, tuple[Finding, ...]]:
    """The plan of a host that has containerd, and findings about containerd."""
    facts, planes = context.facts, context.place.control_planes
    known: Kubernetes = context.catalog.kubernetes
    paths, minor = facts.cluster_host.paths, member.minor
    missing = any(not is_package_installed(facts, name) for name in known.packages)
    needed = not member.before or missing or not version_fits(member.before, member.version)
    # a missing package of a node is installed in the node's version
    keeps = member.joined and needed and not member.is_refused
    version = (keeps and member.before) or member.version
    exact = version.count(".") == 2
    source = _repository(settings, known.repository, system, minor)
    repository = plan_repository(source, facts, wanted=needed)
    containerd, notes = _containerd(settings, context, known.pause_image(minor))
    wanted = tuple(host_files(settings))
    networked, reset = settings.network == "flannel", member.reset
    begins = member.leads and (member.joined or member.initiates)
    plan = KubernetesPlan(
        part=member.part,
        version=version,
        before=member.before,
        transaction=PackageTransaction(
            role="kubernetes",
            title="Kubernetes",
            packages=known.packages,
            facts=facts,
            version=version if exact else None,
            branch=version,
            needed=needed,
            installed=tuple(name for name in known.packages if name in facts.packages),
            patterns=tuple(re.escape(name) for name in (*known.packages, *DEPENDENCIES)),
            repository=repository,
            lock_timeout=context.lock_timeout,
        ),
        hold=to_hold(known.packages, facts, moves=needed) if settings.hold else (),
        wanted_files=wanted,
        files=tuple(file for file in wanted if not file.is_on(facts)),
        containerd=containerd,
        joined=member.joined,
        network=settings.network,
        networks=networked and begins and (NETWORKED not in paths or reset),
        waits=networked and (KUBERNETES_READY_PATH not in paths or reset),
        reset=reset,
        archives=pending_archives(settings.image_archives, facts),
        control_plane=planes[0] if planes else "",
        sources=join_sources(context, member.part) if planes else (),
        leads=member.leads,
        initiates=member.initiates,
        ignored=("SystemVerification",) if _accepts_old_cgroups(settings, known, minor) else (),
        api=known.configuration(minor),
    )
    return plan, notes


def _containerd(
    settings: KubernetesSettings, context: RoleContext, pause: str
) -> tuple[RuntimePlan | None, tuple[Finding, ...]]:
    facts, systemd = context.facts, cgroup_driver(settings) == "systemd"
    required = Required(systemd, pause, bool(settings.registry_mirrors))
    return plan_containerd_cri(facts, context.catalog, required, {**facts.texts, **context.texts})


def _accepts_old_cgroups(settings: KubernetesSettings, known: Kubernetes, minor: str) -> bool:
    """True if kubeadm's check of the host is skipped because of control groups of version 1. Minors
    that take these check the kernel by the same name."""
    accepted = settings.kubelet.get("failCgroupV1") is False
    return accepted and known.requires("cgroups-v2", minor)


def _problems(
    member: HostMember, system: Distribution | None, known: Kubernetes
) -> Iterator[Finding]:
    """Why no plan can be made at all."""
    managers = {name for layout in known.repository.layouts for name in layout.managers}
    if system is None or system.manager not in managers:
        title = system.title if system else "this distribution"
        yield choice.NO_PACKAGES(distribution=title)
    oldest, newest = map(version_tuple, (known.oldest, known.newest))
    if not member.keeps and not oldest <= version_tuple(member.minor) <= newest:
        yield choice.VERSION_UNKNOWN(
            version=member.version, date=known.as_of, oldest=known.oldest, newest=known.newest
        )


def _repository(
    settings: KubernetesSettings, source: KubernetesRepository, system: Distribution, minor: str
) -> Repository:
    own, known = settings.repo_key_fingerprint, source.key.fingerprints
    url = f"{settings.repo_url or source.base}/{source.paths[system.style].format(minor=minor)}"
    key_url = f"{url}{source.key.file}"
    return repository_at(url, key_url, [own] if own else known, system, source.layouts)


def host_files(settings: KubernetesSettings) -> Iterator[FileWrite]:
    """Modules, settings of the kernel, and containerd's mirrors.

    With override_path, containerd adds no /v2 to a URL. Source:
    https://github.com/containerd/containerd/blob/main/docs/hosts.md#override_path-field
    """
    yield FileWrite(MODULES, "overlay\nbr_netfilter\n")
    keys = ("net.bridge.bridge-nf-call-iptables", "net.ipv4.ip_forward")
    yield FileWrite(SYSCTLS, "".join(f"{key} = 1\n" for key in keys))
    for name, url in sorted(settings.registry_mirrors.items()):
        root = url if urlsplit(url).path.strip("/") else f"{url.rstrip('/')}/v2"
        text = (
            f'server = "{root}"\n\n[host."{root}"]\n'
            '  capabilities = ["pull", "resolve"]\n  override_path = true\n'
        )
        folder = re.sub(r"[^A-Za-z0-9_.:-]", "_", name).lstrip(".") or "_"  # stays in its parent
        yield FileWrite(f"{CERTS}/{folder}/hosts.toml", text)
