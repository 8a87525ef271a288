"""templates/examples, which users apply by hand, on real API servers with simulated pods."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from kubernetes import client, utils

from gpufleet_sandbox.cluster import Cluster
from gpufleet_sandbox.waiting import wait_until
from tests.cluster.pods import SECONDS

pytestmark = pytest.mark.claim(
    "The examples for users are accepted by 1.36 and 1.18, and their pods get a GPU.",
    level=5,
)

FOLDER = Path(__file__).resolve().parents[2] / "templates" / "examples"
EXAMPLES = sorted(path.name for path in FOLDER.glob("*.yaml"))
SINCE = {"ttlSecondsAfterFinished": (1, 21)}  # fields that older servers may drop


def objects(name: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((FOLDER / name).read_text()))


def lost(wanted: Any, found: Any, version: tuple[int, ...], path: str = "") -> list[str]:
    """Fields that the server did not store as written."""
    if isinstance(wanted, dict):
        return [
            each
            for key, value in wanted.items()
            if version >= SINCE.get(key, (0,))
            for each in lost(value, (found or {}).get(key), version, f"{path}.{key}")
        ]
    if isinstance(wanted, list):
        pairs = zip(wanted, [*(found or []), *[None] * len(wanted)], strict=False)
        return [each for one, other in pairs for each in lost(one, other, version, path)]
    return [] if wanted == found else [f"{path}: {wanted!r} became {found!r}"]


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_server_accepts_every_field(cluster: Cluster, namespace: str, name: str) -> None:
    version = tuple(int(part) for part in cluster.version.split(".")[:2])
    for body in objects(name):
        [made] = utils.create_from_dict(
            cluster.api, body, namespace=namespace, dry_run="All", field_validation="Strict"
        )
        assert lost(body, cluster.api.sanitize_for_serialization(made), version) == []


@pytest.mark.parametrize("name", EXAMPLES)
def test_its_pod_gets_one_gpu(
    simulated: Cluster, namespace: str, name: str, pods_of: Callable[[str], list[Any]]
) -> None:
    for body in objects(name):
        utils.create_from_dict(simulated.api, body, namespace=namespace)
    assert wait_until(lambda: any(pod.spec.node_name for pod in pods_of("")), SECONDS)
    [pod] = pods_of("")
    [container] = pod.spec.containers
    assert container.resources.limits["nvidia.com/gpu"] == "1"


def test_the_service_of_the_notebook_finds_it(simulated: Cluster, namespace: str) -> None:
    for body in objects("notebook.yaml"):
        utils.create_from_dict(simulated.api, body, namespace=namespace)
    core: Any = client.CoreV1Api(simulated.api)

    def ports() -> list[int]:
        found = core.list_namespaced_endpoints(namespace).items  # none until their controller ran
        subsets = [subset for one in found for subset in one.subsets or ()]
        return [port.port for subset in subsets if subset.addresses for port in subset.ports]

    assert wait_until(lambda: ports() == [8888], SECONDS)
