"""The scrape job that gpufleet renders, in a real Prometheus against a real API server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gpufleet_sandbox.waiting import wait_until
from tests.cluster.conftest import KUBERNETES
from tests.cluster.pool import Pool
from tests.cluster.scraping import (
    FLEET,
    NAMESPACE,
    SCRAPES,
    WORK,
    Exporter,
    Site,
    allow_prometheus,
    local_addresses,
    monitor_job,
)
from tests.cluster.stacking import Bench
from tests.monitoring.fleet import Gpu
from tests.monitoring.fleet_rows import Choice
from tests.monitoring.programs import Prometheus
from tests.monitoring.shipped import PANELS, filled_in, shipped
from tests.unit.gpu_stack.gpu_clusters import OLD, exporter_monitor, stack

OURS = {"monitoring_scrape": "scrape-config"}


@pytest.fixture(scope="module", params=KUBERNETES)
def site(
    request: pytest.FixtureRequest, pool: Pool, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Site]:
    """gpu_cluster on a bare cluster, and exporters behind its pods."""
    folder = tmp_path_factory.mktemp("scrape")
    charts: Path = request.getfixturevalue("charts")
    bench = Bench(pool.bare(request.param), charts)
    with local_addresses() as addresses:
        found = Site(bench, folder, addresses)
        try:
            done = bench.deploy(**OURS)
            assert done.returncode == 0, done.output
            found.start_exporters()
            found.core.create_namespace({"metadata": {"name": WORK.namespace}})
            gpus = {"limits": {"nvidia.com/gpu": str(WORK.requests)}}
            main = {"name": "main", "image": "example/none", "resources": gpus}
            found.run_pod(WORK.namespace, WORK.name, {}, containers=[main], nodeName=WORK.node)
            allow_prometheus(found)
            yield found
        finally:
            for exporter in found.exporters.values():
                exporter.stop()


@pytest.fixture(scope="module")
def prometheus(site: Site) -> Iterator[Prometheus]:
    """Prometheus with the role's job, once it has scraped every exporter."""
    with site.prometheus("job", site.additional_jobs()) as found:
        assert wait_until(lambda: all_up(found), SCRAPES), found.get("targets")
        # so that the checks find it like the real chart's
        address = found.url.removeprefix("http://").split(":")[0]
        site.run_pod(NAMESPACE, "prometheus-0", site.selector("prometheus"), address)
        yield found


def targets(prometheus: Prometheus) -> list[dict[str, Any]]:
    return list(prometheus.get("targets", state="active")["activeTargets"])


def all_up(prometheus: Prometheus) -> bool:
    return [target["health"] for target in targets(prometheus)] == ["up"] * len(FLEET)


def gpu_of(node: str, index: int) -> dict[str, str]:
    """gpufleet's labels that identify one GPU of the fleet."""
    [found] = [Gpu(each, index, None) for each in FLEET if each.name == node]
    return {"node": node, "gpu": str(index), "UUID": found.uuid}


def holds(labels: dict[str, str], part: dict[str, str]) -> bool:
    return part.items() <= labels.items()


@pytest.mark.claim(
    "The scrape job finds every exporter and nothing else, in a real Prometheus.",
    level=6,
)
def test_every_exporter_is_a_target_and_nothing_else(site: Site, prometheus: Prometheus) -> None:
    found = {target["labels"]["node"]: target for target in targets(prometheus)}
    assert {name: (target["scrapeUrl"], target["labels"]) for name, target in found.items()} == {
        name: (
            f"http://{exporter.address}:9400/metrics",
            {
                "job": "gpu-metrics",
                "instance": f"{exporter.address}:9400",
                "namespace": NAMESPACE,
                "pod": site.pods[name],
                "node": name,
            },
        )
        for name, exporter in site.exporters.items()
    }
    assert prometheus.get("targets", state="dropped")["droppedTargets"], "other endpoints"


def test_a_series_has_labels_of_its_target_and_workload(site: Site, prometheus: Prometheus) -> None:
    [found] = prometheus.query('DCGM_FI_DEV_GPU_UTIL{node="gpu-2", gpu="3"}')
    assert found["metric"] == {
        "__name__": "DCGM_FI_DEV_GPU_UTIL",
        "job": "gpu-metrics",
        "instance": f"{site.exporters['gpu-2'].address}:9400",
        "namespace": NAMESPACE,
        "pod": site.pods["gpu-2"],
        "exported_namespace": WORK.namespace,
        "exported_pod": WORK.name,
        "container": "main",
        "hostname": "gpu-2",
        "device": "nvidia3",
        "modelName": "NVIDIA H100 80GB HBM3",
        "DCGM_FI_DRIVER_VERSION": "580.95.05",
        **gpu_of("gpu-2", 3),
    }


ALERTS = [  # name, GPU
    ("GpuFellOffBus", gpu_of("gpu-2", 3)),  # XID 79
    ("GpuRowRemapFailed", gpu_of("gpu-2", 6)),
]


@pytest.mark.parametrize(("name", "gpu"), ALERTS)
def test_an_alert_names_node_gpu_and_pod(
    prometheus: Prometheus, name: str, gpu: dict[str, str]
) -> None:
    def raised() -> list[dict[str, Any]]:
        found = prometheus.get("alerts")["alerts"]
        return [alert for alert in found if alert["labels"]["alertname"] == name]

    [alert] = wait_until(raised, SCRAPES)
    assert holds(alert["labels"], gpu)
    assert gpu["node"] in alert["annotations"]["summary"]
    assert gpu["UUID"] in alert["annotations"]["summary"]
    assert f"{WORK.namespace}/{WORK.name}" in alert["annotations"]["description"]


def panel(prometheus: Prometheus, title: str) -> list[dict[str, Any]]:
    """The series of a panel of the committed dashboards. No series has a label `cluster`.

    Waits for the first series, because recording rules run after the scrape that they read.
    """
    [(dashboard, found)] = [pair for pair in PANELS if pair[1].title == title]
    [(expression, _)] = shipped(dashboard, found)
    query = filled_in(expression, Choice(), cluster=".*")
    return wait_until(lambda: prometheus.query(query), SCRAPES)


def test_a_panel_shows_which_pod_has_which_gpu(prometheus: Prometheus) -> None:
    found = {tuple(sorted(series["metric"].items())) for series in panel(prometheus, "Pods")}
    assert found == {
        (("gpu", str(index)), ("namespace", "research"), ("node", "gpu-2"), ("pod", "train-1"))
        for index in range(8)
    }


def test_a_panel_shows_how_a_namespace_uses_its_gpus(prometheus: Prometheus) -> None:
    [found] = panel(prometheus, "Utilisation by namespace")
    assert (found["metric"], found["value"][1]) == ({"namespace": "research"}, "0.9")


@pytest.mark.claim("A ServiceMonitor with our values gives the same labels.", level=6)
@pytest.mark.extended
def test_the_monitors_targets_have_the_labels_too(site: Site) -> None:
    """The other way to find exporters: a ServiceMonitor, as the operator would translate it."""
    values = site.values("dcgm-exporter")["serviceMonitor"]
    if "relabelings" not in values:  # charts below 3.0.0 do not support them
        [ours] = exporter_monitor(stack(OLD)).objects
        [values] = ours["spec"]["endpoints"]
    with site.prometheus("monitor", [monitor_job(values)]) as found:
        assert wait_until(lambda: all_up(found), SCRAPES), found.get("targets")
        nodes = {target["labels"].get("node") for target in targets(found)}
        assert nodes == {node.name for node in FLEET}
        expected = {(node.name, str(index)) for node in FLEET for index in range(8)}

        def seen() -> set[tuple[str, str]]:
            temperatures = found.query("gpufleet:DCGM_FI_DEV_GPU_TEMP")
            return {(each["metric"]["node"], each["metric"]["gpu"]) for each in temperatures}

        assert wait_until(lambda: seen() == expected, SCRAPES), seen()

        def trained_on() -> set[str]:
            workload = found.query('gpufleet:workload{namespace="research", pod="train-1"}')
            return {series["metric"]["node"] for series in workload}

        assert wait_until(lambda: trained_on() == {"gpu-2"}, SCRAPES), trained_on()


@pytest.mark.extended
def test_the_operators_exporter_is_found_by_the_same_job(
    site: Site, prometheus: Prometheus
) -> None:
    """Its Service has only the label `app`."""
    name = "nvidia-dcgm-exporter"
    exporter = Exporter(FLEET[0], site.addresses.pop())
    exporter.start()
    site.core.create_namespace({"metadata": {"name": "gpu-operator"}})
    spec = {"selector": {"app": name}, "ports": [{"name": "gpu-metrics", "port": 9400}]}
    about = {"name": name, "labels": {"app": name}}
    site.core.create_namespaced_service("gpu-operator", {"metadata": about, "spec": spec})
    site.run_pod("gpu-operator", f"{name}-1", {"app": name}, exporter.address, nodeName="gpu-1")

    def health() -> list[str]:
        found = targets(prometheus)
        wanted = {"namespace": "gpu-operator", "pod": f"{name}-1", "node": "gpu-1"}
        return [each["health"] for each in found if holds(each["labels"], wanted)]

    try:
        assert wait_until(lambda: health() == ["up"], SCRAPES), targets(prometheus)
    finally:
        exporter.stop()
        site.core.delete_namespace("gpu-operator")
    assert wait_until(lambda: len(targets(prometheus)) == len(FLEET), SCRAPES)


CHECKS = ("prometheus_scrapes_the_exporter", "metrics_name_pods")
DOCTOR_CHECKS = ("cluster.prometheus", "cluster.targets")


def verdicts(site: Site) -> list[tuple[str, str]]:
    """Outcome of each check with its code, or with its message if it has no code."""
    found = site.bench.verify(**OURS)
    checks = [found[name] for name in CHECKS]
    return [(check["outcome"], check["code"] or check["message"]) for check in checks]


@pytest.mark.claim("The checks ask a real Prometheus through the API server.", level=6)
def test_the_checks_pass(site: Site, prometheus: Prometheus) -> None:
    assert verdicts(site) == [("passed", ""), ("passed", "")]


@pytest.mark.claim("`doctor` reads targets of a real Prometheus through the API server.", level=6)
def test_the_doctor_reads_the_targets(site: Site, prometheus: Prometheus) -> None:
    answers, targets = map(site.bench.judge(*DOCTOR_CHECKS, **OURS).get, DOCTOR_CHECKS)
    assert answers
    assert (answers[0], " answers, " in answers[1]) == ("PASS", True), answers
    assert targets == ("PASS", f"{len(FLEET)} exporters up")


@pytest.mark.extended
def test_an_exporter_that_is_down_is_reported(site: Site, prometheus: Prometheus) -> None:
    exporter = site.exporters["gpu-3"]
    exporter.stop()
    try:
        assert wait_until(lambda: prometheus.query('up{node="gpu-3"} == 0'), SCRAPES)
        found = site.bench.verify(**OURS)[CHECKS[0]]
        assert (found["outcome"], found["code"]) == ("failed", "GF797"), found["message"]
        assert f"not up: {site.pods['gpu-3']}" in found["message"]
        verdict, cause = site.bench.judge(*DOCTOR_CHECKS, **OURS)[DOCTOR_CHECKS[1]]
        assert (verdict, site.pods["gpu-3"] in cause) == ("WARNING", True), cause
        asked = 'ALERTS{alertname="GpuExporterDown"}'
        [alert] = wait_until(lambda: prometheus.query(asked), SCRAPES)
        assert (alert["metric"]["node"], alert["metric"]["job"]) == ("gpu-3", "gpu-metrics")
    finally:
        exporter.start()
    assert wait_until(lambda: all_up(prometheus), SCRAPES)


@pytest.mark.extended
def test_an_exporter_that_is_no_target_is_reported(site: Site, prometheus: Prometheus) -> None:
    def rename_service(name: str | None) -> None:
        labels = {"app.kubernetes.io/name": name}
        site.core.patch_namespaced_service(
            "dcgm-exporter", NAMESPACE, {"metadata": {"labels": labels}}
        )

    rename_service("another")
    try:
        assert wait_until(lambda: not prometheus.query("up"), SCRAPES)
        assert verdicts(site)[0] == ("failed", "GF797")
    finally:
        rename_service("dcgm-exporter")
    assert wait_until(lambda: targets(prometheus) and all_up(prometheus), SCRAPES)


@pytest.mark.extended
def test_metrics_that_name_no_pod_are_reported(site: Site, prometheus: Prometheus) -> None:
    for exporter in site.exporters.values():
        exporter.names_pods = False
    try:
        named = 'DCGM_FI_DEV_GPU_UTIL{exported_pod!=""}'
        assert wait_until(lambda: not prometheus.query(named), SCRAPES)
        assert verdicts(site) == [("passed", ""), ("failed", "GF798")]
    finally:
        for exporter in site.exporters.values():
            exporter.names_pods = True
