"""A cluster during a run: one connection, facts gathered once, planned releases."""

from __future__ import annotations

import hashlib
import os
import platform
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from gpufleet.core.findings import Finding
from gpufleet.core.paths import NoHome, cache_dir
from gpufleet.helm.chart_choice import load_charts
from gpufleet.helm.obstacles import apis_of
from gpufleet.helm.operations.calls import Helm
from gpufleet.helm.operations.charts import chart_archive, read_chart
from gpufleet.helm.operations.crds import live_crds
from gpufleet.helm.operations.pod_trial import refused_pods
from gpufleet.helm.operations.program import find_helm
from gpufleet.helm.operations.release_run import ReleaseOutcome, ReleaseRun
from gpufleet.helm.output import (
    Failure,
    error_line,
    explain_failure,
    explain_uninstall,
    is_kept,
    is_release_gone,
    removal_failed,
)
from gpufleet.helm.plan import Controller, plan_release, with_chart, with_findings, with_objects
from gpufleet.helm.release import Release, ReleasePlan
from gpufleet.helm.strategy import helm_catalog, helm_strategy
from gpufleet.kube.facts import ClusterFacts, HelmRelease, ReleaseRef, ServerVersion
from gpufleet.kube.findings import WRONG_CLUSTER
from gpufleet.kube.manifests import load_manifests
from gpufleet.kube.operations.access import ClusterProblem, KubeAccess
from gpufleet.kube.operations.api import ClusterApi
from gpufleet.kube.operations.gather import gather_cluster
from gpufleet.kube.operations.lease import active_holder, take_lease
from gpufleet.kube.private_folder import private_folder


@dataclass(slots=True)
class RunCluster:
    """One cluster during a run. `name`: its name in the inventory."""

    name: str
    api: ClusterApi
    helm: Helm
    facts: ClusterFacts
    controller: Controller
    added_apis: set[str] = field(default_factory=set)  # by the CRDs of planned releases

    def plan(self, release: Release) -> ReleasePlan:
        """The complete plan of a release. Its chart is downloaded and rendered only if something
        changes. Raises nothing: obstacles are in the plan's findings."""
        plan = plan_release(release, self.facts, self.controller, helm_catalog())
        if not plan.changes:
            return plan
        try:
            return self._complete(plan)
        except ClusterProblem as problem:
            found = (*plan.findings, *problem.findings)
            return replace(plan, action="blocked", findings=found)

    def _complete(self, plan: ReleasePlan) -> ReleasePlan:
        archive = chart_archive(plan.release, self.helm, helm_cache())
        content = read_chart(archive, plan.release)
        crds = list(content.all_crds(plan.release.values))
        names = [str(crd["metadata"]["name"]) for crd in crds]
        there = live_crds(self.api, [name for name in names if name in self.facts.crds])
        plan = with_chart(plan, content, there, self.facts, helm_catalog())
        objects = self.render(plan.release, archive)
        plan = with_objects(plan, objects, self.facts, self.added_apis)
        plan = with_findings(plan, refused_pods(self.api, plan, objects, self.facts))
        rendered = [item for item in objects if item.get("kind") == "CustomResourceDefinition"]
        self.added_apis |= {api for crd in (*crds, *rendered) for api in apis_of(crd)}
        return replace(plan, archive=archive)

    def render(self, release: Release, archive: Path) -> list[dict[str, Any]]:
        """The objects of a release as helm renders them for this cluster. Raises ClusterProblem."""
        return render_release(self.helm, self.facts, self.added_apis, release, archive)

    def carry_out(self, plan: ReleasePlan, say: Callable[[str], None]) -> ReleaseOutcome:
        """Apply the plan of a release. Raises nothing."""
        return ReleaseRun(plan, self.api, self.helm, self.facts, say).carry_out()

    def uninstall(self, release: HelmRelease, timeout: int) -> Finding | None:
        """Uninstall a release, and wait until its objects are deleted. Returns the finding of a
        failure. A missing release is not a failure. `timeout`: seconds."""
        strategy = helm_strategy(self.controller.helm, self.facts.server, helm_catalog(), release)
        result = self.helm.uninstall(release.ref, strategy, timeout)
        if is_kept(result.stderr):  # helm gives the reason only in its debug output
            result = self.helm.uninstall(release.ref, strategy, timeout, debug=True)
        if result.ok or is_release_gone(result.stderr):
            return None
        if result.code is None:
            late = f"it did not end within {timeout} s: {error_line(result.stderr)}"
            return removal_failed(release.ref, late)
        return explain_uninstall(result.stderr, release.ref, self.facts.context)


def render_release(
    helm: Helm, facts: ClusterFacts, added_apis: Collection[str], release: Release, archive: Path
) -> list[dict[str, Any]]:
    """The objects of a release for a cluster with these facts. Raises ClusterProblem."""
    kinds = {
        f"{crd.group}/{version}/{crd.kind}"
        for crd in facts.crds.values()
        for version in crd.versions
    }
    apis = sorted({"v1", *facts.apis, *kinds, *added_apis})
    result = helm.render(release, archive, facts.server.full, apis)
    if not result.ok:
        failure = Failure("Rendering", result.stderr, "nothing was changed.")
        raise ClusterProblem(explain_failure(failure, release, facts))
    return [item for item in load_manifests(result.stdout) if isinstance(item, dict)]


def open_cluster(
    name: str,
    access: KubeAccess,
    releases: Collection[ReleaseRef],
    *,
    helm: str = "",
    helm_site: str = "",
    supported_only: bool = False,
    uid: str = "",
    wait: float | None = 600,
    say: Callable[[str], None] = lambda line: None,
) -> RunCluster:
    """Connect to a cluster and gather its facts. Raises ClusterProblem.

    `releases`: the releases to read, which may then be planned. `helm`: path of the program, or ""
    to find it. `helm_site`: URL of the folder to download helm from, or "" for its project's.
    `supported_only`: raise if the cluster is too old for the catalog's charts. `uid`: expected uid
    of the namespace kube-system, which identifies the cluster, or "". `wait`: seconds to wait for
    another run's lock; this process then holds the lock until it ends. None: read only, without a
    lock.
    """
    api = ClusterApi(access)
    system = api.get("/api/v1/namespaces/kube-system")
    found = system["metadata"]["uid"]
    if uid and found != uid:
        problem = WRONG_CLUSTER(context=api.context, url=api.url, found=found, wanted=uid)
        raise ClusterProblem(problem)
    lease = take_lease(api, wait, say) if wait is not None else None
    try:
        first = next(iter(load_charts().kubernetes)).split(".")  # minor that has charts
        oldest = ServerVersion(int(first[0]), int(first[1])) if supported_only else None
        facts = gather_cluster(api, oldest, releases)
        program = find_helm(helm, helm_catalog(), helm_cache(), helm_site)
        alone = bool(lease) or not active_holder(api)
    except BaseException:
        if lease:
            lease.give_back()
        raise
    controller = Controller(controller_id(), api.clock, program.version, alone=alone)
    client = Helm(program, api.kubeconfig, controller.id, lease)
    return RunCluster(name, api, client, facts, controller)


def helm_cache() -> Path:
    """The cache, or a folder of this process if the cache cannot be written, as in CI containers of
    a user without home."""
    try:
        folder = cache_dir()
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, NoHome):
        return private_folder()
    parts = (part for part in (folder, folder / "charts") if part.exists())
    return folder if all(os.access(part, os.W_OK | os.X_OK) for part in parts) else private_folder()


def controller_id() -> str:
    """An ID of this machine for a label: a hash, so that its name is not exposed."""
    machine = Path("/etc/machine-id")
    known = machine.read_text() if machine.is_file() else ""
    return hashlib.sha256(f"{known}{platform.node()}".encode()).hexdigest()[:16]
