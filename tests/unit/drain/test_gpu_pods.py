"""The pod that checks a node: it is refused before the drain, and always deleted."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

import pytest

from gpufleet.drain.operations.check import (
    CHECK,
    CHECK_CONTAINER,
    Pull,
    pull_image,
    remove_pods,
    run_pod,
    why_refused,
)
from gpufleet.drain.pods import uses_gpu
from gpufleet.kube.operations.api import ClusterApi
from gpufleet.kube.operations.refused import ApiError

NODE = {
    "metadata": {"name": "n"},
    "spec": {"taints": [{"key": "site/maintenance"}]},
    "status": {"allocatable": {"nvidia.com/gpu": "1"}},
}
QUOTA = {"message": "exceeded quota: gpus", "reason": "Forbidden"}


class Api:
    """Pods in memory, which succeed at once."""

    status: Mapping[str, Any] = {"phase": "Succeeded"}
    code = 403
    runtime = False  # whether there is a RuntimeClass nvidia

    def __init__(self, *refusals: Mapping[str, Any]) -> None:
        self.refusals, self.tried = list(refusals), 0
        self.pods: dict[str, dict[str, Any]] = {}
        self.created: list[Mapping[str, Any]] = []

    def find(self, path: str) -> dict[str, Any] | None:
        if "runtimeclasses" in path:
            return {"handler": "nvidia"} if self.runtime else None
        return self.pods.get(path.rpartition("/")[2])

    def list(self, path: str, labelSelector: str) -> list[Any]:
        return [pod for pod in self.pods.values() if labelSelector in pod["metadata"]["labels"]]

    def create(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        self.try_create(path, body)
        self.created.append(body)
        name = f"p{len(self.created)}"
        about = {**body["metadata"], "name": name}
        self.pods[name] = {**body, "metadata": about, "status": self.status}
        return dict(self.pods[name])

    def try_create(self, path: str, body: Mapping[str, Any]) -> None:
        self.tried += 1
        if self.refusals:
            raise ApiError("POST", self.code, self.refusals.pop(0), "c")

    def delete(self, path: str) -> None:
        del self.pods[path.rpartition("/")[2]]


def client(api: Api) -> ClusterApi:
    return cast(ClusterApi, api)


def run(api: Api, seconds: float = 5.0) -> str:
    return run_pod(client(api), NODE, "image", "nvidia.com/gpu", seconds, lambda wait: False)


def test_a_refusal_is_known_before_the_drain() -> None:
    api = Api(QUOTA)
    assert why_refused(client(api), NODE, "image") == "exceeded quota: gpus"
    assert why_refused(client(api), NODE, "image") is None
    assert not api.pods
    assert why_refused(client(api), {**NODE, "status": {}}, "image") is None
    assert api.tried == 2


def test_a_refusal_for_a_moment_is_waited_for() -> None:
    assert run(Api(QUOTA, QUOTA)) is None
    assert (
        run(Api(*[QUOTA] * 10_000), 0.01)
        == "a pod with nvidia.com/gpu is refused: exceeded quota: gpus"
    )


def pull(api: Api, seconds: float = 5.0) -> Pull:
    return pull_image(client(api), NODE, "image", seconds, lambda wait: False)


def container(state: Mapping[str, Any], name: str = CHECK_CONTAINER) -> dict[str, Any]:
    return {"name": name, "state": state}


def waiting(reason: str, message: str = "") -> dict[str, Any]:
    state = {"waiting": {"reason": reason, "message": message}}
    return {"phase": "Pending", "containerStatuses": [container(state)]}


ENDED = container({"terminated": {"exitCode": 1}})
LOST = container({"terminated": {"reason": "ContainerStatusUnknown"}})
SIDECAR = container({"running": {}}, "a-proxy")
PRESSED = "Pod was rejected: The node had condition: [{}]."
BACKOFF = waiting("ImagePullBackOff")["containerStatuses"]


@pytest.mark.parametrize("status", [
    {"phase": "Failed", "containerStatuses": [ENDED]},
    {"phase": "Failed", "containerStatuses": [SIDECAR, ENDED]},
    waiting("CreateContainerError"), {"phase": "Running"},
])  # fmt: skip
def test_an_image_on_the_node_is_enough(status: dict[str, Any]) -> None:
    """The image need not contain the command, because another pod checks the node."""
    api = Api()
    api.status = status
    assert pull(api) == Pull()
    assert not api.pods
    assert api.tried == 1


@pytest.mark.parametrize(
    ("code", "why"), [(0, None), (1, "a pod with nvidia.com/gpu failed: Error")]
)
def test_a_pod_has_ended_when_our_container_has(code: int, why: str | None) -> None:
    """linkerd/linkerd2#7279: the proxy of a service mesh in the namespace default runs on."""
    ended = container({"terminated": {"exitCode": code, "reason": "Error"}})
    api = Api()
    api.status = {"phase": "Running", "containerStatuses": [SIDECAR, ended]}
    assert run(api) == why
    assert not api.pods


@pytest.mark.parametrize(("status", "came"), [
    ({"phase": "Failed", "reason": "OutOfpods"}, "later"),
    ({"phase": "Failed", "containerStatuses": [LOST]}, "later"),
    ({"phase": "Failed", "reason": "Evicted", "message": PRESSED.format("MemoryPressure")},
     "later"),
    ({"phase": "Failed", "reason": "Evicted", "message": PRESSED.format("DiskPressure")}, "disk"),
])  # fmt: skip
def test_an_image_that_was_not_tried_is_not_there(status: dict[str, Any], came: str) -> None:
    """The drain of the node makes room, and the image is pulled then."""
    api = Api()
    api.status = status
    found = pull(api)
    assert (found.came, found.reason.partition(":")[0]) == (came, "image was not pulled")


@pytest.mark.parametrize(("reason", "came"), [
    ("ErrImagePull", "image"), ("ImagePullBackOff", "image"), ("InvalidImageName", "image"),
    ("ErrImageNeverPull", "image"), ("SignatureValidationFailed", "image"),
    ("ContainerCreating", "node"),
])  # fmt: skip
def test_an_image_that_cannot_be_pulled_is_known_before_the_drain(reason: str, came: str) -> None:
    api = Api()
    api.status = waiting(reason, "no route to host")
    found = pull(api, 0.01)
    assert found.came == came
    assert found.reason.startswith("image is not on the node after 0 s: ")
    assert "no route to host" in found.reason
    assert not api.pods


def test_a_container_of_others_says_nothing_of_our_image() -> None:
    api = Api()
    api.status = {"phase": "Running", "containerStatuses": [SIDECAR, *BACKOFF]}
    assert pull(api, 0.01).came == "image"
    api.status = {"phase": "Running", "containerStatuses": [SIDECAR]}
    assert pull(api, 0.01).came == "node"


def test_an_image_that_ran_is_there_though_the_disk_is_full() -> None:
    api = Api()
    about = {"reason": "Evicted", "message": PRESSED.format("DiskPressure")}
    api.status = {"phase": "Failed", "containerStatuses": [ENDED], **about}
    assert pull(api) == Pull()


def test_an_image_that_fills_the_disk_is_not_on_the_node() -> None:
    api = Api()
    about = {"reason": "Evicted", "message": "The node was low on resource: ephemeral-storage."}
    api.status = {"phase": "Failed", "containerStatuses": [LOST], **about}
    assert pull(api).came == "image"
    assert "does not stay on the node: Evicted" in pull(api).reason


def test_a_pod_that_is_refused_says_why() -> None:
    assert pull(Api(QUOTA)) == Pull("node", "exceeded quota: gpus")


def test_a_pod_that_is_deleted_says_nothing() -> None:
    api = Api()
    api.status = waiting("ErrImagePull")
    api.find = lambda path: None  # type: ignore[method-assign]
    assert pull(api) == Pull("later", "the pod that pulls its image was deleted")


def test_an_abort_ends_the_wait_for_an_image() -> None:
    api = Api()
    api.status = waiting("ErrImagePull")
    assert pull_image(client(api), NODE, "image", 1e9, lambda seconds: True).came == "later"
    assert not api.pods


@pytest.mark.parametrize("ask", [
    lambda api: pull(api), lambda api: why_refused(client(api), NODE, "image"),
])  # fmt: skip
def test_an_error_that_passes_refuses_no_host(ask: Callable[[Api], str]) -> None:
    api = Api(QUOTA)
    api.code = 503
    with pytest.raises(ApiError):
        ask(api)


def test_the_pod_that_pulls_sees_no_gpu_and_ends_no_other() -> None:
    api = Api()
    pull(api)
    spec = api.created[0]["spec"]
    assert (spec["nodeName"], "affinity" in spec) == ("n", False)  # no scheduler preempts others
    assert {"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"} in spec["containers"][0]["env"]
    assert not uses_gpu({"spec": spec})


@pytest.mark.parametrize("runtime", [False, True])
def test_the_pod_that_checks_a_node_runs_on_it_alone(runtime: bool) -> None:
    api = Api()
    api.runtime = runtime
    assert run(api) is None
    spec = api.created[0]["spec"]
    assert "'n'" in str(spec["affinity"])
    assert spec.get("runtimeClassName") == ("nvidia" if runtime else None)
    assert uses_gpu({"spec": spec})
    keys = {each["key"] for each in spec["tolerations"]}
    assert keys >= {"site/maintenance", "node.kubernetes.io/unschedulable"}


def test_pods_of_a_killed_process_are_deleted() -> None:
    api = Api()
    for name, node in (("old", "n"), ("other", "m")):
        about = {"name": name, "labels": {CHECK: "true"}, "annotations": {CHECK: node}}
        api.pods[name] = {"metadata": about}
    assert run(api) is None
    assert list(api.pods) == ["other"]
    remove_pods(client(api))
    assert not api.pods
