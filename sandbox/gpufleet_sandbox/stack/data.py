"""Settings of monitoring on such a cluster: the tags of what was built.

Without Grafana, of which there is no image; gpufleet labels the nodes.
"""

from __future__ import annotations

from typing import Any

from gpufleet_sandbox.stack.names import EXPORTER, names


def monitoring_data() -> dict[str, Any]:
    """Data keys of gpu_cluster, for the real charts as for the tests' own."""
    image = {short: name.values for short, name in names().items()}
    return {
        "monitoring_enabled": True,
        "monitoring_autoscaling": True,
        "monitoring_node_problems": True,
        "monitoring_values": {
            "grafana": {"enabled": False},
            "prometheusOperator": {
                "image": image["operator"],
                "prometheusConfigReloader": {"image": image["reloader"]},
            },
            "prometheus": {"prometheusSpec": {"image": image["prometheus"]}},
            "alertmanager": {"alertmanagerSpec": {"image": image["alertmanager"]}},
            "kubeStateMetrics": {"enabled": True},
            "kube-state-metrics": {"image": image["state"]},
            "prometheus-node-exporter": {"image": image["node-exporter"]},
        },
        "monitoring_exporter_values": {
            "image": {
                "repository": f"{EXPORTER.registry}/{EXPORTER.repository}", "tag": EXPORTER.tag
            }
        },
        "monitoring_adapter_values": {"image": _joined("adapter")},
        "monitoring_node_problems_values": {"image": _joined("detector")},
    }  # fmt: skip


def _joined(short: str) -> dict[str, str]:
    """As charts have it that know no registry."""
    name = names()[short]
    return {"repository": f"{name.registry}/{name.repository}", "tag": name.tag}
