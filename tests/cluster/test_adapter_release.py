"""monitoring_autoscaling: prometheus-adapter as a release, and metrics APIs of other adapters."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from kubernetes import client

from gpufleet.helm.chart_choice import choose_charts, load_charts
from gpufleet.monitoring.adapter import ADAPTER
from gpufleet.monitoring.autoscaling_models import load_autoscaling
from gpufleet.monitoring.autoscaling_rules import custom_rules, external_rules
from tests.cluster.conftest import KUBERNETES
from tests.cluster.fake_charts import write_charts
from tests.cluster.pool import Pool
from tests.cluster.stacking import Bench

pytestmark = pytest.mark.claim(
    "A metrics API that is already served stays with its owner.",
    level=5,
)

WANTED = {
    "monitoring_autoscaling": True,
    "monitoring_prometheus": "none",
    "monitoring_prometheus_url": "http://prometheus.example:9090",
    "monitoring_exporter": False,
}
CUSTOM, EXTERNAL = "v1beta1.custom.metrics.k8s.io", "v1beta1.external.metrics.k8s.io"


@pytest.fixture(scope="module", params=KUBERNETES)
def bench(
    request: pytest.FixtureRequest, pool: Pool, tmp_path_factory: pytest.TempPathFactory
) -> Bench:
    """A cluster without a GPU stack, for all tests of this file."""
    charts: Path = tmp_path_factory.mktemp("charts")
    write_charts(charts)
    return Bench(pool.bare(request.param), charts)


@pytest.fixture
def apis(bench: Bench) -> Any:
    return client.ApiregistrationV1Api(bench.cluster.api)


@pytest.fixture
def foreign(apis: Any) -> Iterator[Any]:
    """`foreign(name)`: registers an API that the Service of another adapter serves."""
    made = []

    def make(name: str) -> None:
        version, group = name.split(".", 1)
        spec = {
            "group": group, "version": version, "groupPriorityMinimum": 100,
            "versionPriority": 100, "insecureSkipTLSVerify": True,
            "service": {"namespace": "theirs", "name": "metrics-of-a-cloud"},
        }  # fmt: skip
        apis.create_api_service({"metadata": {"name": name}, "spec": spec})
        made.append(name)

    yield make
    for name in made:
        apis.delete_api_service(name)


def owners(apis: Any) -> dict[str, str]:
    """API -> the namespace of the Service that serves it."""
    found = apis.list_api_service().items
    return {api.metadata.name: api.spec.service.namespace for api in found if api.spec.service}


def test_an_api_of_another_adapter_is_left_alone(bench: Bench, apis: Any, foreign: Any) -> None:
    foreign(CUSTOM)
    done = bench.deploy(**WANTED)
    assert done.returncode == 0, done.output
    assert "GF890" in done.codes
    assert "theirs/metrics-of-a-cloud" in done.output
    assert ADAPTER not in bench.releases()
    assert owners(apis) == {CUSTOM: "theirs"}


def test_beside_keda_the_adapter_has_no_external_metrics(
    bench: Bench, apis: Any, foreign: Any
) -> None:
    foreign(EXTERNAL)
    done = bench.deploy(**WANTED)
    assert done.returncode == 0, done.output
    assert "GF891" in done.codes
    assert bench.releases()[ADAPTER] == "deployed"
    assert owners(apis) == {CUSTOM: "monitoring", EXTERNAL: "theirs"}


def test_the_release_has_the_rules_of_the_loop(bench: Bench, apis: Any) -> None:
    done = bench.deploy(**WANTED)
    assert done.returncode == 0, done.output
    chosen = choose_charts(load_charts(), bench.cluster.version)[ADAPTER].version
    assert done.report["releases"][ADAPTER]["after"] == chosen
    assert owners(apis) == {CUSTOM: "monitoring", EXTERNAL: "monitoring"}
    catalog = load_autoscaling()
    config = bench.core.read_namespaced_config_map(ADAPTER, "monitoring").data["config.yaml"]
    assert yaml.safe_load(config) == {
        "rules": custom_rules(catalog),
        "externalRules": external_rules(catalog),
    }
    again = bench.deploy(**WANTED)
    assert (again.report["changed"], again.report["failed"]) == (0, False), again.output
