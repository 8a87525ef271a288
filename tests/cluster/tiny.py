"""The chart tiny of the tests as archives, and runs of one release as in a deploy."""

from __future__ import annotations

import io
import re
import tarfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kubernetes import client

from gpufleet.core.findings import Finding
from gpufleet.helm.operations.cluster import RunCluster as Opened
from gpufleet.helm.operations.cluster import open_cluster
from gpufleet.helm.operations.release_run import ReleaseOutcome
from gpufleet.helm.release import ChartSource, Readiness, Release, ReleasePlan
from gpufleet.kube.facts import ReleaseRef
from gpufleet.kube.operations.access import KubeAccess
from gpufleet_sandbox.cluster import Cluster

CHART = Path(__file__).parent / "charts" / "tiny"
Edit = Callable[[str, str], str]


def archive(folder: Path, version: str = "1.0.0", edit: Edit | None = None) -> str:
    """An archive of the chart tiny with a version; `edit`: path, text -> text."""
    path = folder / f"tiny-{version}.tgz"
    with tarfile.open(path, "w:gz") as files:
        for source in sorted(CHART.rglob("*")):
            if not source.is_file():
                continue
            inside = str(source.relative_to(CHART))
            text = source.read_text()
            if inside == "Chart.yaml":
                text = re.sub(r"^version: .*", f"version: {version}", text, flags=re.MULTILINE)
            data = (edit(inside, text) if edit else text).encode()
            entry = tarfile.TarInfo(f"tiny/{inside}")
            entry.size = len(data)
            files.addfile(entry, io.BytesIO(data))
    return str(path)


@dataclass(frozen=True)
class Run:
    """Plan, outcome and output of one run of one release."""

    plan: ReleasePlan
    outcome: ReleaseOutcome | None
    lines: list[str]

    @property
    def ok(self) -> bool:
        return not self.plan.blockers and (self.outcome is None or self.outcome.ok)

    @property
    def findings(self) -> list[Finding]:
        return [*self.plan.findings, *(self.outcome.findings if self.outcome else [])]

    def finding(self, code: str) -> Finding:
        """The one finding with that code; the error lists all findings."""
        found = list(dict.fromkeys(each for each in self.findings if each.code == code))
        assert len(found) == 1, f"expected one {code} in {list(map(str, self.findings))}"
        return found[0]


@dataclass
class Site:
    """A cluster, the test's namespace and the helm that installs releases there."""

    cluster: Cluster
    namespace: str
    helm: Path
    folder: Path
    name: str = "one"
    defaults: dict[str, Any] = field(default_factory=dict)

    def release(
        self, values: dict[str, Any] | None = None, version: str = "1.0.0", **more: Any
    ) -> Release:
        edit = more.pop("edit", None)
        source = more.pop("source", None) or ChartSource(
            "archive", archive(self.folder, version, edit)
        )
        wanted: dict[str, Any] = {"ready": Readiness(timeout=180, patience=4), **more}
        name = wanted.pop("name", self.name)
        return Release(name, self.namespace, "tiny", version, source, values or {}, **wanted)

    def open(self, *names: str, **more: Any) -> Opened:
        """The cluster with facts of the releases with these names, by default of this one."""
        access = KubeAccess(str(self.cluster.kubeconfig))
        ours = [ReleaseRef(self.namespace, name) for name in names or (self.name,)]
        return open_cluster("c", access, ours, helm=str(self.helm), **{"wait": None, **more})

    def apply(
        self, values: dict[str, Any] | None = None, version: str = "1.0.0", **more: Any
    ) -> Run:
        return self.run(self.release(values, version, **more))

    def run(self, release: Release) -> Run:
        lines: list[str] = []
        opened = self.open(release.name, say=lines.append)
        planned = opened.plan(release)
        if not planned.needed:
            return Run(planned, None, lines)
        return Run(planned, opened.carry_out(planned, lines.append), lines)

    @property
    def apps(self) -> Any:
        return client.AppsV1Api(self.cluster.api)

    @property
    def core(self) -> Any:
        return client.CoreV1Api(self.cluster.api)

    def deployment(self, name: str = "one") -> Any:
        return self.apps.read_namespaced_deployment(name, self.namespace)

    def versions(self) -> dict[str, str]:
        """resourceVersion of everything in the namespace that a release could change."""
        core, apps, space = self.core, self.apps, self.namespace
        lists = {
            "Deployment": apps.list_namespaced_deployment(space),
            "DaemonSet": apps.list_namespaced_daemon_set(space),
            "ConfigMap": core.list_namespaced_config_map(space),
            "Secret": core.list_namespaced_secret(space),
            "Service": core.list_namespaced_service(space),
            "Pod": core.list_namespaced_pod(space),
        }
        return {
            f"{kind} {item.metadata.name}": item.metadata.resource_version
            for kind, found in lists.items()
            for item in found.items
        }
