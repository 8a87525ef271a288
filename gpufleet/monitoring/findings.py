"""Alerts, dashboards, autoscaling, monitors and node problems."""

from __future__ import annotations

from gpufleet.core.findings import blocker, info, warning

METRIC_UNKNOWN = blocker(
    "GF775",
    "Autoscaler gets no metric",
    "Expected {expected}; found {found}.",
    "Use a metric name and labels that exist: kubectl get --raw "
    "/apis/custom.metrics.k8s.io/v1beta1",
    description="Each HorizontalPodAutoscaler on GPU metrics must read a value for its metric. "
    "The check compares the names and labels it requests with those that the metrics API serves.",
)

METRICS_API_DOWN = blocker(
    "GF776",
    "Metrics API not available",
    "Expected {expected}; found {found}.",
    "If prometheus-adapter runs, let the control plane reach port 6443 on the nodes (EKS: the "
    "nodes' security group; private GKE: the firewall). Otherwise find out why it does not "
    "respond: kubectl -n monitoring logs deployment/prometheus-adapter",
    description="The APIService of the custom or external metrics API must be available, and the "
    "API must respond.",
)

RULES_NOT_READ = warning(
    "GF894",
    "Prometheus Operator does not know the functions of the alerts",
    "{reader} does not know last_over_time, which the GPU alerts use. They are not created.",
    "Upgrade it, or load templates/monitoring/alerts/rules.yaml into a Prometheus of version 2.26 "
    "or newer.",
)

MONITOR_NOT_SELECTED = warning(
    "GF876",
    "Prometheus does not select the exporter",
    "Prometheus {prometheus} selects monitors by {selector}; the exporter's have {labels}.",
    "Set monitoring_monitor_labels to labels that it selects, and remove other values of these "
    "from serviceMonitor.additionalLabels in monitoring_exporter_values.",
)

NAMESPACE_NOT_READ = warning(
    "GF889",
    "Prometheus does not read a namespace",
    "Prometheus {prometheus} does not read the {kind} of namespace {namespace}: its {key} is "
    "{selector}.",
    "Set monitoring_namespace to the namespace of that Prometheus, or {key} of the Prometheus to "
    "{{}}, which selects all. If it has a selector, label the namespace as it selects (kubectl "
    "label namespace {namespace} KEY=VALUE).",
)

METRICS_API_TAKEN = warning(
    "GF890",
    "Metrics API already served",
    "{api} is already served by {found}, which gpufleet does not manage, and a cluster has this "
    "API only once; prometheus-adapter is skipped.",
    "If it is a prometheus-adapter, add the rules of `gpufleet catalog autoscaling rules` to it. "
    "Otherwise remove it and run again.",
)

EXTERNAL_API_TAKEN = info(
    "GF891",
    "External metrics API already served",
    "{api} is already served by {found}, as by KEDA or Datadog's agent, so prometheus-adapter gets "
    "rules for pod metrics only.",
    "No action required, unless the adapter should serve external metrics: then remove the other "
    "one.",
)

ADAPTER_WITHOUT_PROMETHEUS = blocker(
    "GF892",
    "Autoscaling requires a Prometheus",
    "monitoring_autoscaling is set, but gpufleet neither installs a Prometheus nor knows one: "
    "{why}.",
    "Set monitoring_prometheus_url to the Prometheus that scrapes the exporter, as the cluster's "
    "pods reach it.",
)

DETECTOR_THERE = warning(
    "GF893",
    "Another Node Problem Detector exists",
    "{found} already monitors the nodes and is not managed by gpufleet; it was not changed, and "
    "the GPU checks are not installed.",
    "Add the monitor of `gpufleet catalog node-problems` to it, or remove it and run again.",
)

DASHBOARD_TOO_LARGE = blocker(
    "GF895",
    "Dashboard too large for a ConfigMap",
    "{name} has {size} bytes; a ConfigMap holds at most {largest}.",
    "Split it, or remove it from templates/monitoring/dashboards.",
)

RULES_NOT_SELECTED = warning(
    "GF896",
    "Prometheus does not select the alerts",
    "Prometheus {prometheus} selects rules by {selector}; the GPU rules have {labels}.",
    "Set monitoring_rule_labels to labels that this Prometheus selects. If it selects no rules "
    "at all, give it a ruleSelector.",
)

ALERTS_WITHOUT_FIELDS = warning(
    "GF897",
    "Alerts without metrics",
    "These alerts never fire, because the cluster's dcgm-exporter does not collect the fields in "
    "brackets: {names}.",
    "Add the fields to monitoring_counters if it is set. Otherwise use a dcgm-exporter from 3.0.0 "
    "to 4.8, which gets gpufleet's list: choose its chart in cluster_chart_versions. If Kubernetes "
    "is too old for that chart, set image.tag in monitoring_exporter_values.",
)

RECEIVERS_WRONG = blocker(
    "GF898",
    "No receivers for alerts",
    "monitoring_alert_receivers is the Secret {secret}, but {why}.",
    "Put a list of Alertmanager receivers into its key receivers.yaml, one of them named default; "
    "docs/how-to/monitoring.md has an example.",
)

NOT_SCRAPABLE = info(
    "GF920",
    "Parts of the control plane not watched",
    "No Prometheus in a pod can scrape these parts, by the address or port that their pods are "
    "given: {parts}. kube-prometheus-stack's jobs, rules and dashboards for them are off: they "
    "would fire for ever.",
    "To watch one, let it serve metrics at an address of its node (kubeadm: --bind-address, "
    "listen-metrics-urls of etcd, metricsBindAddress of kube-proxy) and run again.",
    description="kube-prometheus-stack scrapes each part at an address of its node. kubeadm's "
    "defaults are loopback addresses; `gpufleet cluster create` sets `kubernetes_metrics_address`. "
    "Values such as `kubeEtcd.enabled` in `monitoring_values` take precedence.",
)

NO_PROMETHEUS = blocker(
    "GF874",
    "No Prometheus in the cluster",
    "{setting} requires a Prometheus and its operator in the cluster, which has no {kind}.",
    'Set monitoring_prometheus = "install"; or set it to "none", with monitoring_scrape = '
    '"scrape-config", and add the job to your Prometheus.',
)
