"""The Kubernetes plan of one host. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from gpufleet.core.distributions import Distribution
from gpufleet.core.findings import Finding
from gpufleet.core.inventory import CONTROL_PLANE
from gpufleet.core.versions import version_tuple
from gpufleet.facts.distribution import distribution_of
from gpufleet.facts.model import NodeFacts
from gpufleet.host.file_write import FileWrite
from gpufleet.kubernetes import findings as found
from gpufleet.kubernetes.containerd import CERTS, Required, plan_containerd
from gpufleet.kubernetes.kubeadm import cgroup_driver
from gpufleet.kubernetes.models import KubernetesCatalog
from gpufleet.kubernetes.preflight import apart, obstacles
from gpufleet.kubernetes.settings import KubernetesSettings
from gpufleet.packages.repository import Repository, RepositoryPlan, plan_repository
from gpufleet.packages.transaction import Family, to_hold
from gpufleet.role.protocol import RoleContext
from gpufleet.toolkit.runtime_model import RuntimePlan

JOINED = "/var/lib/gpufleet/kubernetes.joined"
BEGUN = "/var/lib/gpufleet/kubernetes.begun"
MODULES = "/etc/modules-load.d/gpufleet-kubernetes.conf"
SYSCTLS = "/etc/sysctl.d/90-gpufleet-kubernetes.conf"
Part = Literal["control-plane", "worker"]


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
    reset: bool  # an earlier run broke off while it joined
    control_plane: str  # name of the host that the others join by
    ignored: tuple[str, ...]  # checks of kubeadm that the settings accept to fail

    @property
    def converged(self) -> bool:
        changes = self.containerd is not None and bool(self.containerd.changes)
        return self.joined and not (self.needed or self.hold or self.files or changes)

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
            "joins": not self.joined,
            "control_plane": self.control_plane,
        }


def plan_kubernetes(
    settings: KubernetesSettings, catalog: KubernetesCatalog, context: RoleContext
) -> tuple[KubernetesPlan | None, tuple[Finding, ...]]:
    """The Kubernetes plan of one host, and findings. Never raises."""
    if not settings.enabled:
        return None, ()
    facts, known, planes = context.facts, catalog.kubernetes, context.place.control_planes
    part: Part = "control-plane" if CONTROL_PLANE in context.place.groups else "worker"
    joined = JOINED in facts.cluster_host.paths
    before = _installed(facts)
    version = settings.version or (before if joined and before else known.newest)
    minor = ".".join(version.split(".")[:2])
    place = distribution_of(facts.os, catalog.distributions)
    problems = list(_problems(version, minor, place, catalog))
    if place is None or problems:
        return None, tuple(problems)
    ours = joined or BEGUN in facts.cluster_host.paths
    problems += obstacles(settings, facts, known, minor, part == "control-plane", ours=ours)
    problems += apart(context)
    problems += _roster(context)
    needed = before is None or not _fits(before, version)
    if needed and joined and before:
        problems.append(found.UPGRADE_REFUSED(installed=before, wanted=version))
    if "containerd" not in facts.runtimes:
        return None, tuple(problems)
    required = Required(cgroup_driver(settings) == "systemd", known.pause_image(minor))
    path = facts.runtimes["containerd"].config_path
    file = facts.files.get(path)
    text = context.texts.get(path, file.content if file else None)
    containerd, notes = plan_containerd(facts, catalog, required, text)
    repository = plan_repository(_repository(settings, catalog, place, minor), facts, wanted=needed)
    wanted = tuple(host_files(settings))
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
        reset=BEGUN in facts.cluster_host.paths,
        control_plane=planes[0] if planes else "",
        ignored=("SystemVerification",) if settings.kubelet.get("failCgroupV1") is False else (),
    )
    return plan, (*problems, *notes, *repository.findings)


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
    package = facts.packages.get("kubelet")
    return package.upstream if package and package.state == "installed" else None


def _fits(installed: str, version: str) -> bool:
    return installed == version or installed.startswith(f"{version}.")


def _problems(
    version: str, minor: str, place: Distribution | None, catalog: KubernetesCatalog
) -> Iterator[Finding]:
    """Why no plan can be made at all."""
    known = catalog.kubernetes
    managers = {name for layout in known.repository.layouts for name in layout.managers}
    if place is None or place.manager not in managers:
        title = place.title if place else "this distribution"
        yield found.NO_PACKAGES(distribution=title)
    if not version_tuple(known.oldest) <= version_tuple(minor) <= version_tuple(known.newest):
        yield found.VERSION_UNKNOWN(
            version=version, date=known.as_of, oldest=known.oldest, newest=known.newest
        )


def _roster(context: RoleContext) -> Iterator[Finding]:
    """What the inventory must say."""
    planes = context.place.control_planes
    if not planes:
        yield found.NO_CONTROL_PLANE()
    elif len(planes) > 1:
        yield found.SEVERAL_CONTROL_PLANES(names=", ".join(planes))


def _repository(
    settings: KubernetesSettings, catalog: KubernetesCatalog, place: Distribution, minor: str
) -> Repository:
    source = catalog.kubernetes.repository
    own = settings.repo_key_fingerprint
    layout = next(each for each in source.layouts if place.manager in each.managers)
    url = f"{settings.repo_url or source.base}/{source.paths[place.style].format(minor=minor)}"
    return Repository(
        name=layout.name,
        manager=place.manager,
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
