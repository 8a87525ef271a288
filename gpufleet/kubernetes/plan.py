"""The Kubernetes plan of one host. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from gpufleet.core.distributions import Distribution
from gpufleet.core.findings import Finding
from gpufleet.core.inventory import CONTROL_PLANE
from gpufleet.core.versions import version_tuple
from gpufleet.facts.distribution import distribution_of
from gpufleet.facts.model import NodeFacts
from gpufleet.host.file_write import FileWrite
from gpufleet.kubernetes.archives import ImageArchive
from gpufleet.kubernetes.containerd import CERTS, Required, plan_containerd
from gpufleet.kubernetes.findings import choice, cluster, k3s
from gpufleet.kubernetes.images import pending, room_for
from gpufleet.kubernetes.kubeadm import cgroup_driver
from gpufleet.kubernetes.models import Kubernetes, KubernetesCatalog
from gpufleet.kubernetes.notes import (
    BEGUN,
    INSTALLING,
    JOINED,
    KUBELET,
    LEAVING,
    MODULES,
    NETWORKED,
    READY,
    SYSCTLS,
)
from gpufleet.kubernetes.preflight import apart, obstacles
from gpufleet.kubernetes.roster import Part, roster, sources
from gpufleet.kubernetes.settings import KubernetesSettings
from gpufleet.packages.repository import Repository, RepositoryPlan, plan_repository
from gpufleet.packages.transaction import Family, to_hold
from gpufleet.role.protocol import RoleContext
from gpufleet.toolkit.runtime_model import RuntimePlan


@dataclass(frozen=True, slots=True)
class KubernetesPlan:
    """The steps of the kubernetes role for one host; an empty step does nothing."""

    part: Part
    version: str  # minor, or exact
    before: str | None  # installed version
    family: Family
    repository: RepositoryPlan
    hold: tuple[str, ...]
    wanted_files: tuple[FileWrite, ...]
    files: tuple[FileWrite, ...]  # those that differ on the host
    containerd: RuntimePlan | None
    joined: bool  # the host is a node of the cluster
    network: str  # flannel or none
    networks: bool  # the network's objects are to be applied
    waits: bool  # the node is to become Ready
    reset: bool  # an earlier run broke off while it joined
    control_plane: str  # name of the host that the others join by
    archives: tuple[ImageArchive, ...]  # of images that containerd is to get
    sources: tuple[str, ...]  # control planes that this host can join by, the best first
    leads: bool  # the first control plane, whose access users get
    initiates: bool  # the cluster begins here
    ignored: tuple[str, ...]  # checks of kubeadm that the settings accept to fail
    api: str  # of kubeadm's configuration

    @property
    def converged(self) -> bool:
        changes = self.containerd is not None and bool(self.containerd.changes)
        steps = self.needed or self.hold or self.files or changes or self.archives
        return self.joined and not (steps or self.networks or self.waits)

    @property
    def needed(self) -> bool:
        """Packages are to be installed."""
        return self.family.needed

    def describe(self) -> dict[str, Any]:
        """The plan as data for preflight's JSON."""
        return {
            "part": self.part,
            "version": self.version,
            "before": self.before,
            "packages": list(self.family.packages) if self.needed else [],
            "files": [file.path for file in self.files],
            "archives": [archive.path for archive in self.archives],
            "joins": not self.joined,
            "control_plane": self.control_plane,
            "initiates": self.initiates,
        }


def plan_kubernetes(
    settings: KubernetesSettings, catalog: KubernetesCatalog, context: RoleContext
) -> tuple[KubernetesPlan | None, tuple[Finding, ...]]:
    """The Kubernetes plan of one host, and findings. Never raises."""
    if not settings.enabled:
        return None, ()
    facts, known, planes = context.facts, catalog.kubernetes, context.place.control_planes
    part: Part = "control-plane" if CONTROL_PLANE in context.place.groups else "worker"
    paths = facts.cluster_host.paths
    joined = {JOINED, KUBELET} <= paths
    before = _installed(facts)
    stays = before if JOINED in paths and settings.version is None else None
    version = settings.version or stays or known.newest
    minor = ".".join(version.split(".")[:2])
    system = distribution_of(facts.os, catalog.distributions)
    problems = list(_problems(version, minor, system, catalog, chosen=not stays))
    if system is None or problems:
        return None, tuple(problems)
    reset = BEGUN in paths or not (joined or paths.isdisjoint((JOINED, LEAVING)))
    ours = joined or reset or not paths.isdisjoint(INSTALLING)
    problems += obstacles(settings, facts, known, minor, part == "control-plane", ours=ours)
    problems += apart(context)
    problems += roster(settings, context, part, joined=joined)
    leads = part == "control-plane" and context.place.position == 0
    initiates = leads and not joined and not context.place.having
    if initiates and JOINED in paths:
        problems.append(cluster.PLANE_RESET())
    missing = any(not _is_installed(facts, name) for name in known.packages)
    needed = before is None or missing or not _fits(before, version)
    if joined and before and not _fits(before, version):
        problems.append(choice.UPGRADE_REFUSED(installed=before, wanted=version))
    elif joined and before and needed:  # a package is missing: its version is the node's
        version = before
    if "containerd" not in facts.runtimes:
        return None, tuple(problems)
    required = Required(cgroup_driver(settings) == "systemd", known.pause_image(minor))
    path = facts.runtimes["containerd"].config_path
    file = facts.files.get(path)
    text = context.texts.get(path, file.content if file else None)
    containerd, notes = plan_containerd(facts, catalog, required, text)
    source = _repository(settings, catalog, system, minor)
    repository = plan_repository(source, facts, wanted=needed)
    wanted = tuple(host_files(settings))
    archives = pending(settings.image_archives, facts)
    problems += room_for(archives, facts)
    networked = settings.network == "flannel"
    plan = KubernetesPlan(
        part=part,
        version=version,
        before=before,
        family=_family(known.packages, version, facts, needed),
        repository=repository,
        hold=to_hold(known.packages, facts, moves=needed) if settings.hold else (),
        wanted_files=wanted,
        files=tuple(file for file in wanted if not file.is_on(facts)),
        containerd=containerd,
        joined=joined,
        network=settings.network,
        networks=networked
        and leads
        and (joined or initiates)
        and (NETWORKED not in paths or reset),
        waits=networked and (READY not in paths or reset),
        reset=reset,
        archives=archives,
        control_plane=planes[0] if planes else "",
        sources=sources(context, part) if planes else (),
        leads=leads,
        initiates=initiates,
        ignored=("SystemVerification",) if _accepts_old_cgroups(settings, known, minor) else (),
        api=known.configuration(minor),
    )
    return plan, (*problems, *notes, *repository.findings)


def _accepts_old_cgroups(settings: KubernetesSettings, known: Kubernetes, minor: str) -> bool:
    """Whether kubeadm's check of the host is skipped because of control groups of version 1. Minors
    that take these check the kernel by the same name."""
    accepted = settings.kubelet.get("failCgroupV1") is False
    return accepted and known.requires("cgroups-v2", minor)


def _family(packages: tuple[str, ...], version: str, facts: NodeFacts, needed: bool) -> Family:
    exact = version.count(".") == 2
    return Family(
        title="Kubernetes",
        packages=packages,
        prefix=version if exact else f"{version}.",
        exact=exact,
        installed=tuple(name for name in packages if name in facts.packages),
        needed=needed,
    )


def _installed(facts: NodeFacts) -> str | None:
    return facts.packages["kubelet"].upstream if _is_installed(facts, "kubelet") else None


def _is_installed(facts: NodeFacts, name: str) -> bool:
    return name in facts.packages and facts.packages[name].state == "installed"


def _fits(installed: str, version: str) -> bool:
    return installed == version or installed.startswith(f"{version}.")


def _problems(
    version: str,
    minor: str,
    system: Distribution | None,
    catalog: KubernetesCatalog,
    *,
    chosen: bool,
) -> Iterator[Finding]:
    """Why no plan can be made at all. `chosen`: the version is not what a node has anyway."""
    known = catalog.kubernetes
    if "+k3s" in version:
        yield k3s.VERSION_OF_K3S(version=version)
        return
    managers = {name for layout in known.repository.layouts for name in layout.managers}
    if system is None or system.manager not in managers:
        title = system.title if system else "this distribution"
        yield choice.NO_PACKAGES(distribution=title)
    if chosen and not version_tuple(known.oldest) <= version_tuple(minor) <= version_tuple(
        known.newest
    ):
        yield choice.VERSION_UNKNOWN(
            version=version, date=known.as_of, oldest=known.oldest, newest=known.newest
        )


def _repository(
    settings: KubernetesSettings, catalog: KubernetesCatalog, system: Distribution, minor: str
) -> Repository:
    source = catalog.kubernetes.repository
    own = settings.repo_key_fingerprint
    layout = next(each for each in source.layouts if system.manager in each.managers)
    url = f"{settings.repo_url or source.base}/{source.paths[system.style].format(minor=minor)}"
    return Repository(
        name=layout.name,
        manager=system.manager,
        url=url,
        key_url=f"{url}{source.key.file}",
        key_fingerprints=(own,) if own else source.key.fingerprints,
        file=layout.file,
        keyring=layout.keyring,
        signed_packages=layout.signed_packages,
        signed_metadata=layout.signed_metadata,
    )


def host_files(settings: KubernetesSettings) -> Iterator[FileWrite]:
    """Modules, settings of the kernel, and containerd's mirrors."""
    yield FileWrite(MODULES, "overlay\nbr_netfilter\n")
    keys = ("net.bridge.bridge-nf-call-iptables", "net.ipv4.ip_forward")
    yield FileWrite(SYSCTLS, "".join(f"{key} = 1\n" for key in keys))
    for name, url in sorted(settings.registry_mirrors.items()):
        text = (
            f'server = "{url}"\n\n[host."{url}"]\n'
            '  capabilities = ["pull", "resolve"]\n  override_path = true\n'
        )
        yield FileWrite(f"{CERTS}/{_folder(name)}/hosts.toml", text)


def _folder(registry: str) -> str:
    """A registry's folder; nothing in it leads out of the parent."""
    return re.sub(r"[^A-Za-z0-9_.:-]", "_", registry).lstrip(".") or "_"
