"""The plan of a node by k3s. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from gpufleet.core.findings import Finding
from gpufleet.core.inventory import CONTROL_PLANE
from gpufleet.core.versions import version_tuple
from gpufleet.facts.model import NodeFacts
from gpufleet.host.file_write import FileWrite
from gpufleet.kubernetes.findings import choice, cluster
from gpufleet.kubernetes.findings import k3s as found
from gpufleet.kubernetes.k3s.config import (
    CONFIG,
    FIXED,
    PORTS,
    SYSTEMD,
    UNITS,
    changed_options,
    node_files,
)
from gpufleet.kubernetes.k3s.files import BINARY, ReleaseFile, release_files
from gpufleet.kubernetes.made_by import made_by
from gpufleet.kubernetes.models import Kubernetes, KubernetesCatalog
from gpufleet.kubernetes.notes import BEGUN, JOINED, READY, RESTARTING
from gpufleet.kubernetes.preflight import apart, others, size_of, unusable_name
from gpufleet.kubernetes.record import KubernetesEntry
from gpufleet.kubernetes.roster import Part, roster, sources
from gpufleet.kubernetes.settings import KubernetesSettings
from gpufleet.role.protocol import RoleContext

STATE = "/var/lib/rancher/k3s/agent"  # a node has it until k3s is removed
OURS = frozenset({BEGUN, JOINED})  # notes of a host that gpufleet made a node, or began to
# what is kubeadm's, or has another place with k3s
UNUSED = (
    "kubelet", "kube_proxy", "etcd_tag", "image_archives", "repo_url", "repo_key_fingerprint",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class K3sPlan:
    """The steps of the kubernetes role for one host by k3s; an empty step does nothing."""

    part: Part
    version: str  # v1.36.3+k3s1
    before: str | None
    release: tuple[ReleaseFile, ...]
    missing: tuple[ReleaseFile, ...]  # those that the host's record does not have
    wanted_files: tuple[FileWrite, ...]
    files: tuple[FileWrite, ...]  # those that differ on the host
    unit: str
    joined: bool  # the host is a node of the cluster
    restarts: bool  # a node whose files change, or did before k3s was restarted; its pods go on
    waits: bool  # the node is to become Ready
    reset: bool  # an earlier run broke off
    endpoint: str  # host:port for nodes and users; "": the server's own address
    network: str
    control_plane: str  # name of the host that the others join by
    sources: tuple[str, ...]  # control planes that this host can join by
    leads: bool  # the control plane, whose access users get
    initiates: bool  # the cluster begins here

    @property
    def converged(self) -> bool:
        return self.joined and not (self.restarts or self.waits)

    @property
    def needed(self) -> bool:
        """Files of the release are to be installed."""
        return bool(self.missing)

    def steps(self) -> dict[str, object]:
        """Sentence -> whether it applies."""
        listed = ", ".join(each.target for each in self.missing)
        joins = f"join the cluster of {self.sources[0] if self.sources else self.control_plane}"
        return {
            "reset what an earlier run left": self.reset,
            f"install k3s {self.version}: {listed}": self.missing,
            f"write {', '.join(file.path for file in self.files)}": self.files,
            f"restart {self.unit}": self.restarts,
            "start the control plane" if self.initiates else joins: not self.joined,
            "wait until the node is Ready": self.waits,
        }

    def describe(self) -> dict[str, Any]:
        """The plan as data for preflight's JSON."""
        return {
            "distribution": "k3s",
            "part": self.part,
            "version": self.version,
            "before": self.before,
            "packages": [],
            "files": [file.path for file in self.files],
            "archives": [each.target for each in self.missing],
            "joins": not self.joined,
            "control_plane": self.control_plane,
            "initiates": self.initiates,
        }


def plan_k3s(
    settings: KubernetesSettings, catalog: KubernetesCatalog, context: RoleContext
) -> tuple[K3sPlan | None, tuple[Finding, ...]]:
    """The plan of one host, and findings. Never raises."""
    facts, known, place = context.facts, catalog.kubernetes, context.place
    part: Part = "control-plane" if CONTROL_PLANE in place.groups else "worker"
    version = settings.version or ""
    problems = tuple(_choice(settings, known, facts))
    if problems:
        return None, problems
    entry, paths = facts.provenance.entry(KubernetesEntry), facts.cluster_host.paths
    release = tuple(_release(settings, known, facts))
    joined = {JOINED, STATE} <= paths
    reset = BEGUN in paths or (JOINED in paths and not joined)
    leads = part == "control-plane" and place.position == 0
    wanted = tuple(node_files(settings, known.k3s, version, part, facts.provenance.files))
    files = tuple(file for file in wanted if reset or not file.is_on(facts))
    missing = _missing(release, {} if reset else entry.k3s)
    plan = K3sPlan(
        part=part,
        version=version,
        before=entry.version if entry.distribution == "k3s" else None,
        release=release,
        missing=missing,
        wanted_files=wanted,
        files=files,
        unit=UNITS[part],
        joined=joined,
        restarts=joined and bool(files or missing or RESTARTING in paths),
        waits=settings.network == "flannel" and (READY not in paths or reset),
        reset=reset,
        endpoint=settings.endpoint or "",
        network=settings.network,
        control_plane=place.control_planes[0] if place.control_planes else "",
        sources=sources(context, part) if place.control_planes else (),
        leads=leads,
        initiates=leads and not joined,
    )
    return plan, tuple(_problems(settings, known, context, plan))


def _problems(
    settings: KubernetesSettings, known: Kubernetes, context: RoleContext, plan: K3sPlan
) -> Iterator[Finding]:
    """What stops a host that has a plan."""
    facts, paths = context.facts, context.facts.cluster_host.paths
    ours = not paths.isdisjoint(OURS)
    yield from _obstacles(known, facts, plan.version, plan.part, ours=ours)
    yield from apart(context)
    planes = context.place.control_planes
    if len(planes) > 1:
        yield found.SEVERAL_SERVERS(names=", ".join(planes))
    yield from roster(settings, context, plan.part, joined=plan.joined)
    if plan.joined and not plan.before:  # without a record, by the unit that runs
        yield from (
            cluster.PART_CHANGED(before=part, wanted=plan.part)
            for part, unit in UNITS.items()
            if part != plan.part and _has_file(facts, f"{SYSTEMD}/{unit}")
        )
    if plan.joined and plan.before and plan.before != plan.version:
        yield found.UPGRADE_REFUSED(installed=plan.before, wanted=plan.version)
    if plan.leads and JOINED in paths and not plan.joined:
        yield found.SERVER_GONE(path=STATE)
    if plan.leads and plan.joined:
        yield from _changes(settings, plan, facts)


def _changes(settings: KubernetesSettings, plan: K3sPlan, facts: NodeFacts) -> Iterator[Finding]:
    """Settings of the cluster that are not those that its server began with."""
    there = facts.files.get(CONFIG)
    before = there.content if there else None
    (wanted,) = (file.content for file in plan.wanted_files if file.path == CONFIG)
    for option in changed_options(before, str(wanted)) if before else ():
        value = getattr(settings, FIXED[option])
        key = f"{settings.prefix}{FIXED[option]}"
        yield found.CLUSTER_CHANGES(path=CONFIG, key=key, wanted=f"{key} = {value}")


def _has_file(facts: NodeFacts, path: str) -> bool:
    there = facts.files.get(path)
    return there is not None and there.content is not None


def _choice(settings: KubernetesSettings, known: Kubernetes, facts: NodeFacts) -> Iterator[Finding]:
    """Why no plan can be made at all."""
    version = settings.version or ""
    if "+k3s" not in version:
        yield found.NO_EXACT_VERSION(version=version or "not set")
        return
    minor = version_tuple(version)[:2]
    low, high = version_tuple(known.k3s.oldest), version_tuple(known.newest)
    if version_tuple(version) < low or minor > high:
        yield choice.VERSION_UNKNOWN(
            version=version, date=known.as_of, oldest=known.k3s.oldest, newest=known.newest
        )
    given = [name for name in UNUSED if getattr(settings, name)]
    if given:
        keys = ", ".join(f"{settings.prefix}{name}" for name in given)
        yield found.SETTINGS_OF_KUBEADM(keys=keys)
    architecture = facts.kernel.architecture
    binary = known.k3s.binaries.get(architecture)
    if binary is None:
        listed = ", ".join(known.k3s.binaries)
        yield found.NO_ARCHITECTURE(architecture=architecture, known=listed)
        return
    release = tuple(_release(settings, known, facts))
    if not any(each.target == BINARY for each in release):
        yield found.NO_PROGRAM(name=binary, reason=_why(settings))
    for each in release:
        digest = settings.k3s_sha256.get(each.name, each.sha256)
        if digest != each.sha256:
            yield found.WRONG_DIGEST(path=each.path, found=each.sha256, wanted=digest)


def _why(settings: KubernetesSettings) -> str:
    if settings.k3s_files:
        return "kubernetes_k3s_files has none of this name."
    if settings.k3s_url:
        return "kubernetes_k3s_sha256 has no sha256 of it: what a mirror serves is not trusted."
    return "Neither kubernetes_k3s_files nor kubernetes_k3s_url is set."


def _release(
    settings: KubernetesSettings, known: Kubernetes, facts: NodeFacts
) -> Iterator[ReleaseFile]:
    architecture, version = facts.kernel.architecture, settings.version or ""
    yield from release_files(
        settings.k3s_files,
        settings.k3s_url,
        settings.k3s_sha256,
        version,
        known.k3s.binaries.get(architecture, ""),
        known.k3s.images_of_others(architecture),
    )


def _obstacles(
    known: Kubernetes, facts: NodeFacts, version: str, part: Part, *, ours: bool
) -> Iterator[Finding]:
    """What stops a host. Swap does not: k3s' kubelet starts with it."""
    minor = ".".join(str(number) for number in version_tuple(version)[:2])
    if facts.cluster_host.cgroups == 1 and known.requires("cgroups-v2", minor):
        yield choice.CGROUPS_V1(version=minor)
    yield from unusable_name(facts)
    if not ours:
        yield from others(facts, PORTS[part], "flannel", own_cni=True)
    if part == "control-plane":
        yield from size_of(facts, known)


def _missing(
    release: tuple[ReleaseFile, ...], recorded: Mapping[str, str]
) -> tuple[ReleaseFile, ...]:
    """The files that the host's record does not have."""
    return tuple(each for each in release if recorded.get(each.name) != each.sha256)


def changed(distribution: str, facts: NodeFacts) -> Iterator[Finding]:
    """Whether a node was made by another distribution than `distribution`, or begun by it."""
    before = made_by(facts)
    if before and before != distribution:
        yield found.DISTRIBUTION_CHANGED(before=before, wanted=distribution)
