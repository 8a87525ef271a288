"""A cluster in memory: an API server that keeps objects by path, and a helm that stores what it was
asked for in Secrets, as Helm does. Both note what a run does with them."""

from __future__ import annotations

import base64
import gzip
import json
from pathlib import Path
from typing import Any

from gpufleet.core.merge import merge_mappings
from gpufleet.core.process import ProgramResult
from gpufleet.helm.builder import EXPORTER, PLUGIN, STACK
from gpufleet.helm.operations.program import HelmProgram
from gpufleet.helm.release import HelmVersion, Release
from gpufleet.kube.helm_releases import OWNER_LABEL, RELEASE_TYPE
from gpufleet.kube.objects import MANAGED_BY_LABELS
from gpufleet.kube.operations.refused import ApiError
from gpufleet.kube.parse import RELEASE_NAME, RELEASE_NAMESPACE
from tests.not_found import not_found

NAMESPACES = "/api/v1/namespaces"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
DAEMONS = "/apis/apps/v1/namespaces/monitoring/daemonsets"
CORE = {
    "pods": "Pod", "configmaps": "ConfigMap", "secrets": "Secret", "services": "Service",
}  # fmt: skip
MONITORING = {"prometheusrules": "PrometheusRule", "servicemonitors": "ServiceMonitor"}
VERBS = ["create", "delete", "list"]


def kinds(names: dict[str, str], namespaced: bool = True) -> dict[str, Any]:
    """A part of the discovery. `names`: plural -> kind."""
    about = {"namespaced": namespaced, "verbs": VERBS}
    return {"resources": [{"name": name, "kind": kind, **about} for name, kind in names.items()]}


def fields_of(entry: Any) -> list[str]:
    """The labels in an entry of managedFields."""
    return [name[2:] for name in entry["fieldsV1"]["f:metadata"]["f:labels"]]


class MemoryApi:
    """One API server in memory. `done`: its writes, and steps that tests add."""

    context, clock, kubeconfig = "memory", 1_800_000_000, None

    def __init__(self, done: list[str]) -> None:
        self.done = done
        self.objects: dict[str, Any] = {}
        self.available = 2  # pods of the exporter
        self.refused = ""  # part of the paths of which writes are refused
        group = {"groupVersion": "node.k8s.io/v1", "version": "v1"}
        about = {"name": "node.k8s.io", "versions": [group], "preferredVersion": group}
        self.known: dict[str, Any] = {
            "/version": {"major": "1", "minor": "36", "gitVersion": "v1.36.3"},
            "/apis": {"groups": [about]},
            "/apis/node.k8s.io": about,
            "/apis/node.k8s.io/v1": kinds({"runtimeclasses": "RuntimeClass"}, namespaced=False),
            "/api/v1": kinds(CORE),
        }
        self.put(NAMESPACES, {"metadata": {"name": "kube-system", "uid": "cluster-1"}})
        for name in ("gpu-1", "gpu-2"):
            self.put("/api/v1/nodes", {"metadata": {"name": name}})
        self.advertise("0")

    def advertise(self, gpus: str) -> None:
        """Set the number of allocatable GPUs of each node, which has 8."""
        numbers = {"capacity": "8", "allocatable": gpus}
        status: dict[str, Any] = {"conditions": [{"type": "Ready", "status": "True"}]}
        status |= {key: {"nvidia.com/gpu": number} for key, number in numbers.items()}
        for name in ("gpu-1", "gpu-2"):
            path = f"/api/v1/nodes/{name}"
            self.objects[path] = merge_mappings(self.objects[path], {"status": status})

    def note(self, verb: str, path: str, *more: str) -> None:
        if self.refused and self.refused in path:
            answer = {"reason": "Invalid", "message": "denied: it is so"}
            raise ApiError(f"{verb} {path}", 422, answer, self.context)
        short = path.removeprefix("/api/v1/").removeprefix("/apis/")
        self.done.append("  " + " ".join([verb, short, *more]))

    def put(self, folder: str, body: Any) -> None:
        """Store an object without a note."""
        number = str(len(self.objects))
        found = merge_mappings(body, {"metadata": {"resourceVersion": number}})
        found["metadata"].setdefault("uid", f"uid-{number}")
        self.objects[f"{folder}/{body['metadata']['name']}"] = found

    def pod(self, name: str, gpus: int = 0) -> None:
        """Run a pod of a user."""
        resources = {"limits": {"nvidia.com/gpu": str(gpus)}}
        spec = {"nodeName": "gpu-1", "containers": [{"image": "x", "resources": resources}]}
        body = {"metadata": {"name": name, "namespace": "team"}, "spec": spec}
        self.put(f"{NAMESPACES}/team/pods", body)

    def define(self, plural: str, kind: str, group: str = "monitoring.coreos.com") -> None:
        """Create a CRD as gpufleet does."""
        spec = {
            "group": group,
            "names": {"plural": plural, "kind": kind},
            "scope": "Namespaced",
            "versions": [{"name": "v1", "served": True, "storage": True}],
        }
        established = {"conditions": [{"type": "Established", "status": "True"}]}
        about = {"name": f"{plural}.{group}", "labels": MANAGED_BY_LABELS}
        self.put(CRDS, {"metadata": about, "spec": spec, "status": established})
        served = self.known.setdefault(f"/apis/{group}/v1", {"resources": []})
        served["resources"] += kinds({plural: kind})["resources"]
        groups = self.known["/apis"]["groups"]
        if all(each["name"] != group for each in groups):
            version = {"groupVersion": f"{group}/v1", "version": "v1"}
            groups.append({"name": group, "versions": [version], "preferredVersion": version})

    def get(self, path: str, *more: object, **query: str) -> Any:
        found = self.objects.get(path) or self.known.get(path)
        if found is None:
            raise ApiError(f"GET {path}", 404, not_found(path), self.context)
        return found

    def find(self, path: str) -> Any:
        return self.objects.get(path)

    def list(self, path: str, *more: object, **query: str) -> list[Any]:
        root, _, plural = path.rpartition("/")
        everywhere = f"{root}/namespaces/"
        wanted = [each.partition("=") for each in query.get("labelSelector", "").split(",")]
        field, _, value = query.get("fieldSelector", "").partition("=")

        def fits(name: str, body: Any) -> bool:
            folder = name.rpartition("/")[0]
            here = folder == path or (name.startswith(everywhere) and folder.endswith(f"/{plural}"))
            labels = body["metadata"].get("labels") or {}
            known = all(
                labels.get(key) == value if equal else key in labels
                for key, equal, value in wanted
                if key
            )
            fields = {"": "", "type": body.get("type")}
            fields["spec.nodeName"] = (body.get("spec") or {}).get("nodeName")
            return here and known and fields[field] == value

        return [body for name, body in self.objects.items() if fits(name, body)]

    def create(self, path: str, body: Any) -> None:
        name = body["metadata"]["name"]
        if f"{path}/{name}" in self.objects:
            raise ApiError(f"POST {path}", 409, {"reason": "AlreadyExists"}, self.context)
        self.note("create", f"{path}/{name}")
        space = path.split("/namespaces/")[-1].split("/")[0] if "/namespaces/" in path else ""
        self.put(path, merge_mappings(body, {"metadata": {"namespace": space}}) if space else body)

    def apply(self, path: str, body: Any, *, manager: str = "", force: bool = True) -> None:
        """Apply an object as a whole; with a manager of its own, only its labels."""
        if manager:
            return self._apply_labels(path, body["metadata"].get("labels") or {}, manager)
        self.note("apply", path)
        return self.put(path.rpartition("/")[0], body)

    def _apply_labels(self, path: str, labels: dict[str, str], manager: str) -> None:
        """Set labels, and remove earlier ones of the same manager, the only one of this object."""
        self.note("apply", path, *(f"{key}={value}" for key, value in labels.items()))
        about = self.objects[path]["metadata"]
        known = {name for each in about.get("managedFields", []) for name in fields_of(each)}
        kept = {key: text for key, text in about.get("labels", {}).items() if key not in known}
        fields = {"f:metadata": {"f:labels": {f"f:{key}": {} for key in labels}}}
        entry = {"manager": manager, "operation": "Apply", "fieldsV1": fields}
        changed = {**about, "labels": {**kept, **labels}, "managedFields": [entry]}
        self.objects[path] = {**self.objects[path], "metadata": changed}

    def merge(self, path: str, body: Any) -> None:
        about = body.get("metadata") or body["spec"]["template"]["metadata"]
        marks = {**about.get("labels", {}), **about.get("annotations", {})}
        self.note("merge", path, *(f"{key}={value}" for key, value in marks.items()))
        self.objects[path] = merge_mappings(self.objects[path], body)

    def delete(self, path: str, body: Any = None) -> None:
        self.note("delete", path)
        if path not in self.objects:
            raise ApiError(f"DELETE {path}", 404, not_found(path), self.context)
        del self.objects[path]


class MemoryHelm:
    """helm for a cluster in memory. `lease`: the cluster's lock; `fails`: words of a call that
    does not succeed."""

    def __init__(self, api: MemoryApi, lease: Any = None, fails: str = "") -> None:
        self.api, self.lease, self.fails = api, lease, fails
        self.program = HelmProgram(Path("helm"), HelmVersion(3, 22))

    def upgrade(
        self, release: Release, archive: Path, *more: Any, adopted: bool = False
    ) -> ProgramResult:
        if not self._begin(f"upgrade {release.ref} {release.chart}"):
            return ProgramResult(1, "", "Error: it broke")
        folder = f"{NAMESPACES}/{release.namespace}/secrets"
        number = 1
        while f"{folder}/{self._secret(release.name, number)}" in self.api.objects:
            number += 1
        content = {
            "name": release.name,
            "namespace": release.namespace,
            "version": number,
            "info": {"status": "deployed"},
            "chart": {"metadata": {"name": release.chart, "version": release.version}},
            "config": release.values,
            "manifest": self._exporter(release) if release.chart == EXPORTER else "",
        }
        packed = base64.b64encode(base64.b64encode(gzip.compress(json.dumps(content).encode())))
        labels = {"owner": "helm", "name": release.name, "version": str(number)}
        labels |= {"status": "deployed", OWNER_LABEL: "me"}
        name = self._secret(release.name, number)
        metadata = {"name": name, "namespace": release.namespace, "labels": labels}
        data = {"release": packed.decode()}
        self.api.put(folder, {"metadata": metadata, "type": RELEASE_TYPE, "data": data})
        if release.chart == PLUGIN:
            self.api.advertise("8")
        if release.chart == STACK:
            about = {"name": f"{STACK}-kubelet", "namespace": "kube-system"}
            body = {"metadata": about, "spec": {}}
            self.api.put(f"{NAMESPACES}/kube-system/services", body)
            for plural, kind in MONITORING.items():
                self.api.define(plural, kind)
        return ProgramResult(0, "", "")

    def rollback(self, release: Release, revision: int, *more: Any) -> ProgramResult:
        worked = self._begin(f"rollback {release.ref} {revision}")
        return ProgramResult(0, "", "") if worked else ProgramResult(1, "", "Error: it broke")

    def uninstall(self, ref: Any, *more: Any, debug: bool = False) -> ProgramResult:
        if not self._begin(f"uninstall {ref}"):
            return ProgramResult(1, "", "Error: it broke")
        start = f"{NAMESPACES}/{ref.namespace}/secrets/{self._secret(ref.name, '')}"
        for path in [path for path in self.api.objects if path.startswith((start, DAEMONS))]:
            del self.api.objects[path]
        return ProgramResult(0, "", "")

    def _begin(self, words: str) -> bool:
        self.api.done.append(f"  helm {words}")
        return not self.fails or self.fails not in words

    def _exporter(self, release: Release) -> str:
        """Start the exporter; its manifest."""
        marks = {RELEASE_NAME: release.name, RELEASE_NAMESPACE: release.namespace}
        about = {"name": EXPORTER, "namespace": release.namespace, "annotations": marks}
        volumes = release.values.get("extraConfigMapVolumes", [])
        template = {"metadata": {}, "spec": {"containers": [], "volumes": volumes}}
        pods = ("desiredNumberScheduled", "numberAvailable", "updatedNumberScheduled")
        status = dict.fromkeys(pods, 2) | {"numberAvailable": self.api.available}
        self.api.put(DAEMONS, {"metadata": about, "spec": {"template": template}, "status": status})
        return f"apiVersion: apps/v1\nkind: DaemonSet\nmetadata:\n  name: {EXPORTER}\n"

    @staticmethod
    def _secret(name: str, number: int | str) -> str:
        return f"sh.helm.release.v1.{name}.v{number}"
