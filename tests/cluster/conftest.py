"""Real control planes for the tests: one per Kubernetes version and worker, reset between."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from kubernetes import client
from kubernetes.client.exceptions import ApiException

from gpufleet_sandbox.cluster import Cluster
from gpufleet_sandbox.cluster.build import program
from gpufleet_sandbox.paths import cache_dir
from gpufleet_sandbox.waiting import wait_until
from tests.cluster.fake_charts import write_charts
from tests.cluster.pods import SECONDS, pod
from tests.cluster.pool import Pool
from tests.cluster.stacking import REAL_CHARTS, Bench
from tests.cluster.tiny import Site

# `make test-all` adds 1.18, which has no server-side field validation
KUBERNETES = os.environ.get("GPUFLEET_TEST_KUBERNETES", "1.36").split()
EXISTING = os.environ.get("GPUFLEET_TEST_KUBECONFIG")  # an existing cluster


@pytest.fixture(scope="session")
def pool(worker_id: str) -> Iterator[Pool]:
    """The worker's control planes; GPUFLEET_KEEP_SANDBOX=1 leaves them running."""
    found = Pool(worker_id)
    yield found
    if os.environ.get("GPUFLEET_KEEP_SANDBOX") != "1":
        found.end()


@pytest.fixture(scope="module", params=["existing"] if EXISTING else KUBERNETES)
def cluster(request: pytest.FixtureRequest, pool: Pool) -> Cluster:
    """A cluster for all tests of a module, bare at its start.

    GPUFLEET_TEST_KUBERNETES sets the versions; GPUFLEET_TEST_KUBECONFIG names an existing cluster
    to use instead, with its own nodes.
    """
    return Cluster.existing(Path(EXISTING)) if EXISTING else pool.bare(request.param)


@pytest.fixture
def simulated(cluster: Cluster) -> Cluster:
    """The cluster, for tests that need the sandbox's simulated nodes, pods and processes."""
    if not cluster.ours:
        pytest.skip(f"{EXISTING} was not started by the sandbox: no simulated nodes")
    return cluster


@pytest.fixture
def namespace(cluster: Cluster) -> Iterator[str]:
    """A namespace for the test, ready for pods; deleted afterwards."""
    core: Any = client.CoreV1Api(cluster.api)
    name = core.create_namespace({"metadata": {"generateName": "test-"}}).metadata.name

    def accepts_pods() -> bool:
        try:  # refused until the controllers have created its service account
            core.create_namespaced_pod(name, pod({}, name="probe"), dry_run="All")
        except ApiException:
            return False
        return True

    assert wait_until(accepts_pods, SECONDS)
    yield name
    core.delete_namespace(name)


@pytest.fixture
def pods_of(cluster: Cluster, namespace: str) -> Callable[[str], list[Any]]:
    """The pods of the test's namespace with a label, `pods_of("app=web")`."""
    core: Any = client.CoreV1Api(cluster.api)
    return lambda selector: list(core.list_namespaced_pod(namespace, label_selector=selector).items)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests with helm 4 as `extended`, except those in which helm 4 differs from helm 3."""
    different = ("test_a_field_changed_by_hand", "test_a_second_run_changes_nothing")
    for item in items:
        parameters = item.callspec.params if hasattr(item, "callspec") else {}
        if parameters.get("helm") == "helm 4" and not item.name.startswith(different):
            item.add_marker("extended")


@pytest.fixture(scope="session", params=["helm 3", "helm 4"])
def helm(request: pytest.FixtureRequest) -> Path:
    """helm 3 and helm 4, built from their Go modules."""
    name = {"helm 3": "helm", "helm 4": "helm4"}[request.param]
    return program(name, cache_dir() / "go", print)


@pytest.fixture
def site(cluster: Cluster, namespace: str, helm: Path, tmp_path: Path) -> Site:
    """A namespace for releases, with each helm."""
    return Site(cluster, namespace, helm, tmp_path)


@pytest.fixture
def place(cluster: Cluster, namespace: str, tmp_path: Path) -> Site:
    """A site with helm 3 only, for tests that do not depend on helm."""
    return Site(cluster, namespace, cluster.helm, tmp_path)


@pytest.fixture(scope="session")
def charts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of the charts' archives: GPUFLEET_CHARTS with the real ones, or fakes."""
    if REAL_CHARTS:
        return Path(REAL_CHARTS)
    folder = tmp_path_factory.mktemp("charts")
    write_charts(folder)
    return folder


@pytest.fixture(params=KUBERNETES)
def bench(request: pytest.FixtureRequest, pool: Pool, charts: Path) -> Iterator[Bench]:
    """A bare cluster for each test."""
    found = Bench(pool.bare(request.param), charts)
    yield found
    found.reset_priority()


@pytest.fixture
def current(pool: Pool, charts: Path) -> Bench:
    """A bench on the newest Kubernetes only."""
    return Bench(pool.bare(KUBERNETES[0]), charts)


@pytest.fixture
def unlabelled(pool: Pool, charts: Path) -> Bench:
    """A bench on the newest Kubernetes. Its nodes lack NFD's labels."""
    return Bench(pool.bare(KUBERNETES[0], labelled=False), charts)
