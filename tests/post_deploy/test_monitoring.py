"""A cluster's monitoring: the installed components run and respond."""

from __future__ import annotations

from gpufleet.verify.cluster import CheckedCluster
from gpufleet.verify.findings import clusters as kinds
from gpufleet.verify.monitoring import installed_objects, monitoring_problems


def test_monitoring_is_available(cluster: CheckedCluster) -> None:
    """The Prometheus and the Alertmanager that gpufleet installed are available."""
    found = installed_objects(cluster)
    cluster.need(found, "gpufleet installed no Prometheus")
    wrong = monitoring_problems(found, cluster.data)
    cluster.expect(not wrong, kinds.MONITORING_DOWN, "both to be available", "; ".join(wrong))


def test_prometheus_answers(cluster: CheckedCluster) -> None:
    """The Prometheus that gpufleet installed, or that `monitoring_prometheus = "existing"` names,
    answers a query; other checks skip without it."""
    named = cluster.data.get("monitoring_prometheus") == "existing"
    relied_on = named or installed_objects(cluster).get("prometheus")
    cluster.need(relied_on, "gpufleet installed no Prometheus, and the inventory names none")
    answer = cluster.prometheus("up")
    found = answer if isinstance(answer, str) else ""
    cluster.expect(not found, kinds.MONITORING_DOWN, "an answer", found)
