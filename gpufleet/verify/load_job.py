"""The Job that puts the GPUs of one node under load: where, what, for how long. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from gpufleet.core.versions import version_tuple
from gpufleet.verify.cluster import RESOURCE
from gpufleet.verify.load_models import LoadField, LoadImage, LoadTest

PART = "load-test"
LABELS = {"app.kubernetes.io/managed-by": "gpufleet", "app.kubernetes.io/component": PART}
KEPT_SECONDS = 3600  # after its end, if the run cannot remove it
ENDED = ("Succeeded", "Failed")
SHARED = "none"  # the strategy of GPUs that are not


@dataclass(frozen=True, slots=True)
class LoadRequest:
    """The inventory's settings. `seconds` of load, `image` and `cuda` in place of the catalog's
    choice and the node's label; None where it is not set."""

    seconds: int
    start_seconds: int
    image: str | None = None
    cuda: int | None = None
    runtime_class: str | None = None

    @property
    def limit(self) -> int:
        """Seconds after which an unfinished Job is stopped."""
        return self.start_seconds + 2 * self.seconds

    @classmethod
    def of(cls, data: Mapping[str, Any], catalog: LoadTest) -> LoadRequest:
        """From the data of an inventory. Raises ValueError for an invalid number."""
        cuda = data.get("verify_load_cuda")
        program = catalog.program
        return cls(
            seconds=int(data.get("verify_load_seconds") or program.seconds),
            start_seconds=int(data.get("verify_load_start_seconds") or program.start_seconds),
            image=data.get("verify_load_image") or None,
            cuda=int(cuda) if cuda else None,
            runtime_class=data.get("device_plugin_runtime_class") or None,
        )


@dataclass(frozen=True, slots=True)
class Load:
    """What runs on one node. `compute`: its GPUs' compute capability, such as 9.0."""

    node: str
    gpus: int
    image: str
    cuda: int
    field: LoadField
    compute: str


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A node on which nothing can run now, and why."""

    node: str
    why: str

    def __str__(self) -> str:
        return f"{self.node}: {self.why}"


def choose(
    catalog: LoadTest, request: LoadRequest, node: Any, pods: Iterable[Any]
) -> Load | LeftOut:
    """What to run on a node. `node`, `pods`: V1Node, all V1Pods of the cluster."""
    name, labels = node.metadata.name, node.metadata.labels or {}
    product = labels.get(catalog.labels.product, "")
    gpus = free_gpus(node, pods)
    compute = ".".join(labels.get(label, "") for label in catalog.labels.compute)
    label = next((labels[name] for name in catalog.labels.cuda if labels.get(name)), "")
    cuda = request.cuda or (int(label) if label.isdigit() else 0)
    if node.spec.unschedulable:
        return LeftOut(name, "it is cordoned")
    if "-MIG-" in product:
        return LeftOut(name, f"its GPUs are in parts ({product})")
    if gpus <= 0:
        return LeftOut(name, "it has no free GPU")
    if compute.startswith(".") or compute.endswith("."):
        return LeftOut(name, f"no label {catalog.labels.compute[0]}: GPU feature discovery is off")
    field, image = field_of(catalog, compute), _image(catalog, cuda)
    if not cuda:
        return LeftOut(name, f"no label {catalog.labels.cuda[0]}, and verify_load_cuda is not set")
    oldest = next((entry.compute for entry in catalog.oldest if entry.cuda == cuda), None)
    if oldest and version_tuple(compute) < version_tuple(oldest) and not request.cuda:
        return LeftOut(
            name,
            f"CUDA {cuda} of its driver begins at compute capability {oldest}, it has {compute}; "
            "verify_load_cuda names another program",
        )
    if field is None or not (image or request.image):
        return LeftOut(name, f"no image for CUDA {cuda} and compute capability {compute} is known")
    if labels.get(catalog.labels.sharing, SHARED) != SHARED:
        gpus = 1  # more shares of a GPU are no more load
    chosen = request.image or (image.image if image else "")
    return Load(name, gpus, chosen, cuda, field, compute)


def field_of(catalog: LoadTest, compute: str) -> LoadField | None:
    """What is loaded on GPUs of a compute capability."""
    number = version_tuple(compute)
    return next((field for field in catalog.fields if version_tuple(field.since) <= number), None)


def _image(catalog: LoadTest, cuda: int) -> LoadImage | None:
    """The newest one with a program for a major version of CUDA."""
    found = [image for image in catalog.images if cuda in image.cuda]
    return max(found, key=lambda image: version_tuple(image.dcgm), default=None)


def free_gpus(node: Any, pods: Iterable[Any]) -> int:
    """GPUs of a node that no pod uses."""
    offered = int((node.status.allocatable or {}).get(RESOURCE, 0))
    return offered - sum(
        int((part.resources.limits or {}).get(RESOURCE, 0) if part.resources else 0)
        for pod in pods
        if pod.spec.node_name == node.metadata.name and pod.status.phase not in ENDED
        for part in pod.spec.containers
    )


def job(catalog: LoadTest, load: Load, request: LoadRequest) -> dict[str, Any]:
    """The manifest, for any Kubernetes from 1.16 on.

    Its pod goes through the scheduler, which counts GPUs, and by the node's name, which is not
    always its host name. It is ended after its time, and forgotten an hour later.
    """
    program = catalog.program
    container = {
        "name": "dcgmproftester",
        "image": load.image,
        "command": program.command(load.cuda, load.field.field, request.seconds),
        "resources": {"limits": {RESOURCE: str(load.gpus)}},
        "securityContext": {"capabilities": {"add": list(program.capabilities)}},
    }
    spec = {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "tolerations": [{"key": RESOURCE, "operator": "Exists", "effect": "NoSchedule"}],
        "affinity": {"nodeAffinity": _only(load.node)},
        "containers": [container],
        **({"runtimeClassName": request.runtime_class} if request.runtime_class else {}),
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"generateName": "gpufleet-load-", "labels": LABELS},
        "spec": {
            "backoffLimit": 0,
            "activeDeadlineSeconds": request.limit,
            "ttlSecondsAfterFinished": KEPT_SECONDS,
            "template": {"metadata": {"labels": LABELS}, "spec": spec},
        },
    }


def _only(node: str) -> dict[str, Any]:
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    return {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
