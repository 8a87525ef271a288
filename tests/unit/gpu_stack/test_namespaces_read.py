"""Whether Prometheus reads the namespaces of the exporter's monitor and of the alert rules."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gpufleet.kube.facts import ClusterFacts, Crd, Namespace, PrometheusInstance
from gpufleet.monitoring.alerting import RULE_CRD
from tests.unit.gpu_stack.gpu_clusters import FACTS, MONITOR, codes, stack

KEYS = ("serviceMonitorNamespaceSelector", "ruleNamespaceSelector")
TEAM = {"matchLabels": {"team": "gpu"}}
BY_NAME = {
    "matchExpressions": [
        {"key": "kubernetes.io/metadata.name", "operator": "In", "values": ["web", "monitoring"]}
    ]
}
OURS = {"matchLabels": {"app.kubernetes.io/managed-by": "gpufleet"}}


def there(selector: Any, namespace: str = "infra", **labels: str) -> ClusterFacts:
    """A cluster with a Prometheus, and with the namespace monitoring if it has labels."""
    spec = {"serviceMonitorSelector": {}, "ruleSelector": {}, **dict.fromkeys(KEYS, selector)}
    spaces = {"monitoring": Namespace("monitoring", labels=labels)} if labels else {}
    return replace(
        FACTS,
        prometheuses=(PrometheusInstance(namespace, "main", spec),),
        crds={name: Crd(name, "", ("v1",), {}) for name in (MONITOR, RULE_CRD)},
        namespaces=spaces,
    )


@pytest.mark.parametrize(
    ("facts", "unread"),
    [
        (there({}), False),
        (there(None), True),
        (there(None, "monitoring"), False),
        (there(TEAM), True),
        (there(TEAM, team="gpu"), False),
        (there(BY_NAME), False),
        (there(OURS), False),  # gpufleet will create it with this label
        (there(OURS, team="gpu"), True),
    ],
)
def test_an_existing_prometheus(facts: ClusterFacts, unread: bool) -> None:
    plan = stack(facts)
    found = [each for each in plan.findings if each.code == "GF889"]
    assert len(found) == (2 if unread else 0)
    assert codes(plan) <= {"GF889"}
    if unread:
        assert "ServiceMonitors of namespace monitoring" in found[0].message
        assert "PrometheusRules of namespace monitoring" in found[1].message


@pytest.mark.parametrize("key", KEYS)
def test_an_installed_prometheus(key: str) -> None:
    def planned(selector: Any) -> set[str]:
        spec = {"prometheus": {"prometheusSpec": {key: selector}}}
        return codes(stack(monitoring_values=spec))

    assert planned(TEAM) == {"GF889"}
    assert planned(BY_NAME) == planned({}) == set()


def test_the_operators_monitor_is_in_its_own_namespace() -> None:
    plan = stack(there(BY_NAME), cluster_stack="gpu-operator")
    (found,) = [each for each in plan.findings if each.code == "GF889"]
    assert "ServiceMonitors of namespace gpu-operator" in found.message
