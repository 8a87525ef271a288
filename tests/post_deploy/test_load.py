"""Load: every free GPU computes for a while, and Prometheus sees it.

Off unless the inventory has `verify_load = True`: it takes every free GPU for minutes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from gpufleet.core.names import count_noun
from gpufleet.verify.cluster import PROMETHEUS_SILENT, CheckedCluster
from gpufleet.verify.findings import clusters as kinds
from gpufleet.verify.load import LoadRequest, LoadResult, find_idle_gpus, load_running


@pytest.fixture(scope="module")
def report(request: pytest.FixtureRequest) -> Callable[[str], None]:
    """A line of progress for the user who waits."""
    reporter = request.config.pluginmanager.get_plugin("terminalreporter")
    return reporter.write_line if reporter else print


@pytest.fixture(scope="module")
def load(cluster: CheckedCluster, report: Callable[[str], None]) -> Iterator[LoadResult]:
    cluster.need(cluster.data.get("verify_load"), "verify_load is not set")
    request = LoadRequest.of(cluster.data)
    cluster.need(request.image, "verify_load_image is not set")
    with load_running(cluster, request, report) as result:
        yield result


def test_load_finishes(cluster: CheckedCluster, load: LoadResult) -> None:
    """A pod of the user's image runs to its end on every free GPU."""
    cluster.expect(
        not load.trouble,
        kinds.LOAD_ENDED,
        f"success of {count_noun(load.gpus, 'pod')}",
        load.trouble,
    )


def test_load_is_seen(cluster: CheckedCluster, load: LoadResult) -> None:
    """Prometheus saw the pods' GPUs busy for the wanted share of the time."""
    cluster.need(not load.trouble, "the load did not finish")
    request = LoadRequest.of(cluster.data)
    idle = find_idle_gpus(cluster, load, request)
    expected = f"GPUs that are busy for at least {request.share:.0%} of the time"
    found = f"{PROMETHEUS_SILENT}: {idle}" if isinstance(idle, str) else "; ".join(idle)
    cluster.expect(not idle, kinds.LOAD_UNSEEN, expected, found)
