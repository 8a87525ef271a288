"""The sandbox's control planes are real: version, nodes, controllers, scheduler, admission."""

from __future__ import annotations

from typing import Any

import pytest
from kubernetes import client
from kubernetes.client.exceptions import ApiException

from gpufleet_sandbox.cluster import Cluster
from gpufleet_sandbox.waiting import wait_until
from tests.cluster.conftest import KUBERNETES
from tests.cluster.pods import SECONDS, Pods, phases, pod, workload
from tests.cluster.pool import Pool, groups

pytestmark = pytest.mark.claim(
    "Control planes of the sandbox have the version asked for and listen on loopback only.",
    level=5,
)


def test_the_version_is_the_requested_one(cluster: Cluster) -> None:
    answer: Any = client.VersionApi(cluster.api).get_code()
    assert answer.git_version == f"v{cluster.version}"
    assert f"{answer.major}.{answer.minor}".rstrip("+") == cluster.version.rpartition(".")[0]


def test_a_reset_restores_the_original_objects(pool: Pool) -> None:
    """New objects are deleted, deleted and changed ones restored, while the servers run."""
    minor = KUBERNETES[0]
    found = pool.bare(minor)
    core, apps = client.CoreV1Api(found.api), client.AppsV1Api(found.api)
    extensions = client.ApiextensionsV1Api(found.api)
    core.create_namespace({"metadata": {"name": "made"}})
    apps.create_namespaced_deployment("default", workload("left", replicas=3))
    names = {"plural": "things", "singular": "thing", "kind": "Thing"}
    schema = {"openAPIV3Schema": {"type": "object"}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema}
    spec = {"group": "left.example", "names": names, "scope": "Cluster", "versions": [version]}
    extensions.create_custom_resource_definition(
        {"metadata": {"name": "things.left.example"}, "spec": spec}
    )
    core.patch_node("gpu-1", {"metadata": {"labels": {"nvidia.com/gpu.present": None}}})
    core.delete_node("gpu-2")
    assert wait_until(lambda: "left.example" in groups(found), SECONDS)
    again = pool.bare(minor)
    assert again.processes == found.processes
    assert {one.metadata.name for one in core.list_namespace().items} == {
        "default", "kube-node-lease", "kube-public", "kube-system",
    }  # fmt: skip
    assert apps.list_deployment_for_all_namespaces().items == []
    assert core.list_pod_for_all_namespaces().items == []
    assert extensions.list_custom_resource_definition().items == []
    assert "left.example" not in groups(found)
    nodes = {node.metadata.name: node.metadata.labels for node in core.list_node().items}
    assert set(nodes) == {"gpu-1", "gpu-2", "gpu-3"}
    assert nodes["gpu-1"]["nvidia.com/gpu.present"] == "true"


def test_a_job_completes(simulated: Cluster, namespace: str) -> None:
    batch: Any = client.BatchV1Api(simulated.api)
    template = pod({"app": "job"})
    template["spec"]["restartPolicy"] = "Never"
    batch.create_namespaced_job(
        namespace, {"metadata": {"name": "job"}, "spec": {"template": template}}
    )

    def complete() -> bool:
        status = batch.read_namespaced_job("job", namespace).status
        done = {each.type for each in status.conditions or () if each.status == "True"}
        return bool(status.succeeded == 1 and "Complete" in done)

    assert wait_until(complete, SECONDS)


def test_gpus_are_scheduled_and_run_out(simulated: Cluster, namespace: str, pods_of: Pods) -> None:
    core: Any = client.CoreV1Api(simulated.api)
    for number, gpus in enumerate(("8", "9")):
        limits = {"resources": {"limits": {"nvidia.com/gpu": gpus}}}
        body = pod({"gpus": gpus}, name=f"pod-{number}", container=limits)
        core.create_namespaced_pod(namespace, body)
    assert wait_until(lambda: phases(pods_of("gpus=8")) == ["Running"], SECONDS)

    def reason() -> str:
        (pending,) = pods_of("gpus=9")
        return "".join(each.message or "" for each in pending.status.conditions or ())

    assert wait_until(lambda: "Insufficient nvidia.com/gpu" in reason(), SECONDS)


def test_an_account_without_permissions_is_refused(cluster: Cluster, namespace: str) -> None:
    core: Any = client.CoreV1Api(cluster.api)
    account = f"system:serviceaccount:{namespace}:default"
    with pytest.raises(ApiException, match="cannot list resource"):
        core.list_namespaced_secret(namespace, _headers={"Impersonate-User": account})


PROPERTIES = {"spec": {"type": "object", "properties": {"text": {"type": "string"}}}}
WORDS = {
    "metadata": {"name": "words.example.org"},
    "spec": {
        "group": "example.org",
        "scope": "Namespaced",
        "names": {"plural": "words", "singular": "word", "kind": "Word", "listKind": "WordList"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": PROPERTIES}},
            }
        ],
    },
}


def test_custom_resources_are_checked_by_their_schema(cluster: Cluster, namespace: str) -> None:
    """Empty strings too: a server that was built with too recent a Go handles them wrongly."""
    extensions: Any = client.ApiextensionsV1Api(cluster.api)
    custom: Any = client.CustomObjectsApi(cluster.api)
    word = {"apiVersion": "example.org/v1", "kind": "Word", "metadata": {"name": "empty"}}

    def create(text: object) -> dict[str, Any]:
        body = {**word, "spec": {"text": text}}
        made: dict[str, Any] = custom.create_namespaced_custom_object(
            "example.org", "v1", namespace, "words", body
        )
        return made

    def served() -> bool:
        found = extensions.read_custom_resource_definition("words.example.org").status
        return any(c.type == "Established" and c.status == "True" for c in found.conditions or ())

    extensions.create_custom_resource_definition(WORDS)
    try:
        assert wait_until(served, SECONDS)
        assert create("")["spec"] == {"text": ""}
        with pytest.raises(ApiException, match=r"spec\.text.*must be of type string"):
            create(7)
    finally:
        extensions.delete_custom_resource_definition("words.example.org")
