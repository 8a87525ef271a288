"""A cluster that has its own Prometheus: exporter, alerts and dashboards are added to it.

gpufleet plan examples/own_prometheus.py
gpufleet apply examples/own_prometheus.py
"""

gpu_cluster = (
    ["@cluster/prod"],
    {
        "cluster_kubeconfig": "~/.kube/config",
        "cluster_context": "prod",
        "monitoring_prometheus": "existing",  # kube-prometheus-stack is not installed
        "monitoring_monitor_labels": {"release": "kps"},  # not set: what its selectors ask for
        "monitoring_rule_labels": {"release": "kps"},
        "monitoring_dashboards": True,
        "device_plugin_enabled": False,  # another team runs it
    },
)
