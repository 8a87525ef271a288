"""deploys/gpu_cluster.py on real control planes, with the real charts in GPUFLEET_CHARTS."""

from __future__ import annotations

from typing import Any

import pytest
from kubernetes import client

from gpufleet.core.versions import version_tuple
from gpufleet.helm.chart_choice import choose_charts, load_charts
from tests.cluster.stacking import STACK, Bench, choices_of

CRD = "prometheuses.monitoring.coreos.com"


@pytest.mark.claim(
    "A bare cluster becomes a GPU cluster; a second run changes nothing within 5 seconds "
    "(1.36 and 1.18).",
    level=5,
)
def test_a_bare_cluster_becomes_a_gpu_cluster_and_stays_converged(bench: Bench) -> None:
    done = bench.deploy()
    assert done.returncode == 0, done.output
    chosen = choose_charts(load_charts(), bench.cluster.version)
    assert done.report["releases"] == {
        name: {"before": None, "after": chosen[name].version} for name in STACK
    }
    assert bench.releases() == dict.fromkeys(STACK, "deployed")
    codes = {found["code"] for found in done.report["findings"] if found["severity"] != "info"}
    old = version_tuple(chosen["dcgm-exporter"].version) < (3, 0, 0)
    lacking = {"GF897"} if old else set()  # two alerts lack fields of a newer exporter
    assert codes == {"GF914", *lacking}  # simulated nodes advertise GPUs from the start
    bench.raise_priority()  # other tests must not slow down the measured run
    again = bench.deploy()
    assert again.returncode == 0, again.output
    assert (again.report["changed"], again.report["failed"]) == (0, False)
    assert again.seconds < 5
    checks = bench.verify()
    failed = {
        name: part.get("code")
        for name, part in checks.items()
        if part["outcome"] not in ("passed", "skipped")
    }
    assert failed == {"prometheus_answers": "GF709"}  # simulated nodes run no Prometheus
    assert checks["a_pod_with_a_gpu_finishes"]["outcome"] == "passed"
    assert checks["charts_are_of_the_versions_wanted"]["outcome"] == "passed"
    pins = {"dcgm-exporter": "3.1.5"}
    moved = bench.verify("charts_are", cluster_chart_versions=pins)
    assert moved["charts_are_of_the_versions_wanted"]["code"] == "GF758"
    assert "nothing shows what ran" in checks["vectors_are_added_on_the_gpu"]["message"]
    silent = "Prometheus does not answer through the API server: 503"
    assert silent in checks["prometheus_scrapes_the_exporter"]["message"]


@pytest.mark.claim(
    "Grafana has no default password, and no output has the one it has.",
    level=5,
)
@pytest.mark.extended
def test_grafanas_password_is_neither_printed_nor_changed(current: Bench) -> None:
    done = current.deploy("-vv", monitoring_grafana_node_port=32322)
    assert done.returncode == 0, done.output
    secret = current.core.read_namespaced_secret("gpufleet-grafana", "monitoring")
    password = client.ApiClient().sanitize_for_serialization(secret)["data"]["admin-password"]
    assert len(password) > 30
    assert password not in done.output
    assert current.deploy(monitoring_grafana_node_port=32322).report["changed"] == 0
    after = current.core.read_namespaced_secret("gpufleet-grafana", "monitoring")
    assert after.data == secret.data
    checks = current.verify(monitoring_grafana_node_port=32322)
    assert checks["grafana_port"]["outcome"] == "passed"
    assert current.verify(monitoring_grafana_node_port=32323)["grafana_port"]["code"] == "GF758"


def test_a_dry_run_shows_all_changes_and_makes_none(current: Bench) -> None:
    done = current.deploy("--dry")
    assert done.returncode == 0, done.output
    assert "kube-prometheus-stack: install" in done.output
    assert current.releases() == {}
    namespaces = {found.metadata.name for found in current.core.list_namespace().items}
    assert "monitoring" not in namespaces


# the version in the annotations of the chart's CRDs
OPERATOR = {"45.10.1": None, "72.9.1": "0.82.2", "88.5.3": "0.93.1"}


@pytest.mark.extended
def test_crds_are_updated_before_the_chart_that_needs_them(current: Bench) -> None:
    choices = choices_of("kube-prometheus-stack", current.cluster.version)
    if len(choices) < 2:
        pytest.skip(f"gpufleet chooses no version older than {choices[0]}")
    old, new = choices[-2:]
    pins = {"kube-prometheus-stack": old}
    assert current.deploy(cluster_chart_versions=pins).returncode == 0
    api = client.ApiextensionsV1Api(current.cluster.api)

    def version() -> str | None:
        found: Any = api.read_custom_resource_definition(CRD)
        return (found.metadata.annotations or {}).get("operator.prometheus.io/version")

    assert version() == OPERATOR[old]
    done = current.deploy()
    assert done.returncode == 0, done.output
    moved = done.report["releases"]["kube-prometheus-stack"]
    assert moved == {"before": old, "after": new}
    assert version() == OPERATOR[new]
    objects = client.CustomObjectsApi(current.cluster.api)
    found: Any = objects.list_cluster_custom_object("monitoring.coreos.com", "v1", "prometheuses")
    if new == "88.5.3":  # the CRDs of 72.9.1 lack it
        assert "hostNetwork" in found["items"][0]["spec"]
    assert current.deploy().report["changed"] == 0


UPGRADES = [  # gpufleet's choices, oldest first; at most the cluster's own
    {"kube-prometheus-stack": "45.10.1", "dcgm-exporter": "2.6.10",
     "nvidia-device-plugin": "0.14.5", "node-feature-discovery": "0.14.6"},
    {"kube-prometheus-stack": "72.9.1", "dcgm-exporter": "3.1.5",
     "nvidia-device-plugin": "0.14.5", "node-feature-discovery": "0.14.6"},
    {},  # the cluster's own
]  # fmt: skip


@pytest.mark.claim("Each chart version upgrades to the next, CRDs first.", level=5)
@pytest.mark.extended
def test_every_choice_can_be_upgraded_to_the_next(current: Bench) -> None:
    before: dict[str, str] = {}
    chosen = choose_charts(load_charts(), current.cluster.version)
    for step in UPGRADES:
        pins = {name: min(step[name], chosen[name].version, key=version_tuple) for name in step}
        done = current.deploy(cluster_chart_versions=pins)
        assert done.returncode == 0, done.output
        moved = done.report["releases"]
        plugin = moved["nvidia-device-plugin"]
        if plugin["before"] and plugin["before"] != plugin["after"]:
            assert (
                "GF881" in done.codes
            )  # gpu-feature-discovery of 0.15 and newer selects other pods
        assert {name: part["before"] for name, part in moved.items() if part["before"]} == before
        before = {name: part["after"] for name, part in moved.items()}
        assert current.releases() == dict.fromkeys(STACK, "deployed")
        assert current.deploy(cluster_chart_versions=pins).report["changed"] == 0
    assert before == {name: chosen[name].version for name in STACK}
