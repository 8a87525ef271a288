"""Types: the desired state of a Helm release, and its plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from gpufleet.core.findings import Finding
from gpufleet.helm.chart_models import OperatorOperands
from gpufleet.kube.facts import HelmRelease, ObjectRef, ReleaseRef
from gpufleet.kube.helm_releases import OWNER_LABEL

Action = Literal[
    "install", "upgrade", "no-op", "wait", "repair-pending", "repair-failed", "repair", "blocked"
]
VALUES_LABEL = "gpufleet-values"  # on the same Secrets; value: hash of the values that gpufleet set
STALE_SECONDS = 15 * 60  # seconds after which a pending release counts as interrupted


def is_our_release(found: HelmRelease) -> bool:
    """True if gpufleet created or adopted the newest revision of a release. Its name and namespace
    do not show that, as every guide uses the same. A helm without labels (before 3.13) drops the
    label when its user upgrades the release, which then belongs to that user."""
    return OWNER_LABEL in found.labels


@dataclass(frozen=True, slots=True)
class ChartSource:
    """The source of a chart.

    `location`: for `repository` its URL; for `oci` the chart's reference without its version
    (oci://ghcr.io/prometheus-community/charts/kube-prometheus-stack); for `archive` the path of a
    .tgz file on the machine that gpufleet runs on. `logins`: path of a file with credentials, or
    "". `plain_http`: allow a registry without TLS.
    """

    kind: Literal["repository", "oci", "archive"]
    location: str
    logins: str = ""
    plain_http: bool = False

    @property
    def host(self) -> str:
        """The host of a repository or registry, with the port if it has one."""
        return self.location.split("://")[-1].split("/")[0]


@dataclass(frozen=True, slots=True)
class Operands:
    """The operands of one release's ClusterPolicy, and when they are ready.

    `known`: how the operator reports it. `nodes`: DaemonSet -> the nodes that need a pod of it.
    """

    known: OperatorOperands
    nodes: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Readiness:
    """When a release counts as ready. Every Deployment and StatefulSet must be available.

    `nodes`: DaemonSet -> the nodes that need a pod of it if they are usable and fit its placement;
    () allows an empty DaemonSet. Any other DaemonSet must have all its desired pods; 0 desired pods
    are a warning.
    `timeout`: seconds to wait; `patience`: seconds after which a persistent cause (an image that
    cannot be pulled, a crash, a quota) ends the wait. `operands`: must also be ready, if an
    operator is installed. `offering`: these nodes must advertise GPUs, which they do as soon as a
    device plugin has registered with their kubelet. `labels`: labels that the run adds to these
    nodes, unless they have another value.
    """

    nodes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    timeout: int = 300
    patience: int = 60
    operands: Operands | None = None
    offering: bool = False
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Release:
    """The desired state of a Helm release.

    `values`: all values of the chart, including the user's.
    `adopt`: take over a release of this name and chart that was not created by gpufleet.
    `left_by`: the setting that leaves such a release to its owner. `force_conflicts`: overwrite
    fields that another manager changed (helm 4).
    `downgrade`: allow an older chart than the installed one. `crd_version`: the version annotation
    of its CRDs, for example operator.prometheus.io/version; a CRD with it is never replaced by an
    older one.
    """

    name: str
    namespace: str
    chart: str
    version: str
    source: ChartSource
    values: Mapping[str, Any] = field(default_factory=dict, repr=False)  # may contain secrets
    ready: Readiness = Readiness()
    crd_version: str = ""
    adopt: bool = False
    left_by: str = ""
    force_conflicts: bool = False
    downgrade: bool = False

    @property
    def ref(self) -> ReleaseRef:
        return ReleaseRef(self.namespace, self.name)

    @property
    def origin(self) -> dict[str, Any]:
        """The chart, its version and source, as fields of findings."""
        return {"chart": self.chart, "version": self.version, "source": self.source.location}


@dataclass(frozen=True, slots=True)
class HelmVersion:
    """Version of helm without the patch number, which source builds lack."""

    major: int
    minor: int

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}"


@dataclass(frozen=True, slots=True)
class HelmStrategy:
    """Flags and variables for this version of helm and of the server."""

    flags: tuple[str, ...] = ()  # for `helm upgrade --install` and `helm rollback`
    environment: Mapping[str, str] = field(default_factory=dict)
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CrdStep:
    """A CRD of the chart to write before the chart.

    `method`: `apply` is server-side, `replace` is for servers on which that fails.
    """

    name: str
    action: Literal["create", "update"]
    method: Literal["apply", "replace"]
    before: str  # version from its annotation, or ""
    after: str
    manifest: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ReleasePlan:
    """The changes of one release, with reasons."""

    release: Release
    action: Action
    reason: str
    before: HelmRelease | None  # the installed release
    rollback_to: int | None = None  # revision to which a repair rolls back first
    diff: tuple[str, ...] = ()  # unified diff of the values; secrets are masked
    crds: tuple[CrdStep, ...] = ()
    recreate: tuple[ObjectRef, ...] = ()  # workloads to delete before the upgrade
    kept: tuple[ObjectRef, ...] = ()  # objects with data that helm must not delete in the upgrade
    strategy: HelmStrategy = HelmStrategy()
    findings: tuple[Finding, ...] = ()
    archive: Path | None = None  # of its chart, if the plan changes something

    @property
    def needed(self) -> bool:
        """True if there is anything to do. Waiting counts, although it changes nothing."""
        return self.action not in ("no-op", "blocked")

    @property
    def changes(self) -> bool:
        return self.needed and self.action != "wait"

    @property
    def blockers(self) -> tuple[Finding, ...]:
        return tuple(finding for finding in self.findings if finding.blocks)
