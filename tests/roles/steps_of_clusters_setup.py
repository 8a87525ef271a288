"""Shared by the tests of steps of clusters."""

from __future__ import annotations

RICH = {
    "device_plugin_runtime_class": "nvidia",
    "device_plugin_label_nodes": True,
    "monitoring_alert_receivers": "pager",
    "monitoring_autoscaling": True,
    "monitoring_node_problems": True,
    "monitoring_exporter_values": {"arguments": ["--debug"]},
}
WRITES = ("  create", "  apply", "  merge", "  delete", "  helm")
