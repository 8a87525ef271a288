"""Helm releases: what is wanted, and what a plan says about one. Types only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from gpufleet.core.findings import Finding
from gpufleet.kube.facts import ClusterFacts, HelmRelease, ObjectRef, ReleaseRef, Workload

Action = Literal[
    "install", "upgrade", "no-op", "wait", "repair-pending", "repair-failed", "repair", "blocked"
]
STALE = 15 * 60  # seconds after which nobody is at work on a pending release any more


@dataclass(frozen=True, slots=True)
class ChartSource:
    """Where a chart comes from.

    `location`: of a `repository` its URL, of `oci` the reference of the chart without its version
    (oci://ghcr.io/prometheus-community/charts/kube-prometheus-stack), of an `archive` the path of
    a .tgz file on the machine that gpufleet runs on. `logins`: path of a file with names and
    passwords, "" for none. `plain_http`: the registry has no TLS, and that is meant.
    """

    kind: Literal["repository", "oci", "archive"]
    location: str
    logins: str = ""
    plain_http: bool = False

    @property
    def host(self) -> str:
        """Host, and port where it has one, of a repository or registry."""
        return self.location.split("://")[-1].split("/")[0]


@dataclass(frozen=True, slots=True)
class Unready:
    """A workload that is not there yet. `reason`: a clause such as "2 of 3 pods are ready"."""

    workload: Workload
    reason: str

    def __str__(self) -> str:
        return f"{self.workload.kind} {self.workload.name}: {self.reason}"


@dataclass(frozen=True, slots=True)
class OperandWait:
    """What is still to come. `policy`: a sentence about the ClusterPolicy, "" where it is ready;
    `missing`: DaemonSets that are missing or not recreated yet, in words. `no_policy`: there is
    no ClusterPolicy of the release, or no such kind."""

    policy: str = ""
    missing: tuple[str, ...] = ()
    unready: tuple[Unready, ...] = ()
    no_policy: bool = False

    @property
    def lines(self) -> list[str]:
        policy = f"{self.policy} is not there" if self.no_policy else self.policy
        return [*filter(None, [policy]), *self.missing, *map(str, self.unready)]

    def __bool__(self) -> bool:
        return bool(self.lines)


class Operands(Protocol):
    """What has to be ready besides a release's own workloads, because an operator makes it."""

    def awaited(self, release: ReleaseRef, facts: ClusterFacts) -> OperandWait:
        """What is still to come, as the facts tell."""
        ...

    def findings(self, release: ReleaseRef, facts: ClusterFacts) -> list[Finding]:
        """What a person should know of operands that are all there."""
        ...


@dataclass(frozen=True, slots=True)
class Readiness:
    """When a release counts as ready. Every Deployment and StatefulSet must be available.

    `pods`: DaemonSet -> pods that it must have at least, for example one per GPU node; 0 says that
    it may be empty. A DaemonSet that is not named must have all pods it wants; where it wants none
    that is a warning. `timeout`: seconds to wait; `patience`: seconds after which a cause that
    stays (an image that cannot be pulled, a crash, a quota) ends the wait. `operands`: what has to
    be ready besides, where an operator is installed. `offering`: nodes that must offer GPUs to
    pods, as they do once a device plugin has registered with their kubelet.
    """

    pods: Mapping[str, int] = field(default_factory=dict)
    timeout: int = 300
    patience: int = 60
    operands: Operands | None = None
    offering: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Release:
    """A Helm release as it should be.

    `values`: everything that is passed to the chart, the user's own values merged already.
    `adopt`: take over a release of this name and chart that something else made, although values
    of it get lost. `force_conflicts`: take fields back that something else changed (helm 4).
    `downgrade`: an older chart than the installed one is meant. `crd_version`: the annotation of
    its CRDs that tells their version, for example operator.prometheus.io/version; where a CRD has
    it, an older one is never put over a newer one.
    """

    name: str
    namespace: str
    chart: str
    version: str
    source: ChartSource
    values: Mapping[str, Any] = field(default_factory=dict, repr=False)  # may hold secrets
    ready: Readiness = Readiness()
    crd_version: str = ""
    adopt: bool = False
    force_conflicts: bool = False
    downgrade: bool = False

    @property
    def ref(self) -> ReleaseRef:
        return ReleaseRef(self.namespace, self.name)

    @property
    def origin(self) -> dict[str, Any]:
        """Which chart comes from where, as findings about that name it."""
        return {"chart": self.chart, "version": self.version, "source": self.source.location}


@dataclass(frozen=True, slots=True)
class HelmVersion:
    """Version of the helm program, without the patch: a helm built from source has none."""

    major: int
    minor: int

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}"


@dataclass(frozen=True, slots=True)
class HelmStrategy:
    """How helm is called so that it works with this server and this version of helm."""

    flags: tuple[str, ...] = ()  # of `helm upgrade --install` and `helm rollback`
    environment: Mapping[str, str] = field(default_factory=dict)
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CrdStep:
    """A CRD of the chart that is to be written before the chart.

    `method`: `apply` is server-side, `replace` for servers where that fails.
    """

    name: str
    action: Literal["create", "update"]
    method: Literal["apply", "replace"]
    before: str  # version by its annotation; "" where unknown
    after: str
    manifest: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ReleasePlan:
    """What is to be done about one release, and why."""

    release: Release
    action: Action
    reason: str
    before: HelmRelease | None  # as found
    rollback_to: int | None = None  # revision to go back to first, when a repair starts there
    diff: tuple[str, ...] = ()  # values, old against new, as unified diff; secrets are masked
    crds: tuple[CrdStep, ...] = ()
    recreate: tuple[ObjectRef, ...] = ()  # workloads that have to go before the upgrade
    strategy: HelmStrategy = HelmStrategy()
    findings: tuple[Finding, ...] = ()

    @property
    def needed(self) -> bool:
        """Whether anything is to be carried out; waiting counts, although it changes nothing."""
        return self.action not in ("no-op", "blocked")

    @property
    def changes(self) -> bool:
        return self.needed and self.action != "wait"

    @property
    def blockers(self) -> tuple[Finding, ...]:
        return tuple(finding for finding in self.findings if finding.blocks)
