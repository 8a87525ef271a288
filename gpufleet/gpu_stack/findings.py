"""The GPU stack of a cluster, and NVIDIA's GPU Operator."""

from __future__ import annotations

from gpufleet.core.findings import blocker, info, warning

OPERATOR_THERE = blocker(
    "GF870",
    "Cluster managed by the GPU Operator",
    "gpufleet installed a GPU Operator ({found}), which would advertise the GPUs that the device "
    "plugin advertises.",
    'Set cluster_stack = "gpu-operator", or remove the operator first (gpufleet remove).',
)

PLUGIN_THERE = info(
    "GF871",
    "Another device plugin exists",
    "{found} already advertises the GPUs; gpufleet's device plugin is not installed.{lack}",
    "device_plugin_enabled = False hides this. To install gpufleet's, remove the other one and set "
    "device_plugin_enabled = True. {limit}",
)

INSTALLED_TWICE = warning(
    "GF914",
    "Component installed beside another one",
    "{found} exists, and {chart} is installed in addition, as the inventory requests: {why}.",
    "Remove one of them. To leave it to the other one, set {left_by} and uninstall gpufleet's "
    "release {chart} if it exists.",
)

NFD_IN_PLUGIN = blocker(
    "GF916",
    "Two NFDs requested",
    "device_plugin_values enables the NFD of the plugin's chart (nfd.enabled), and {found} runs "
    "another one: both would write the same labels of nodes.",
    "Remove nfd.enabled from device_plugin_values, or uninstall the other one.",
)

EXPORTER_THERE = warning(
    "GF872",
    "Another exporter exists",
    "{found} already collects GPU metrics, which a second exporter would double; dcgm-exporter is "
    "skipped.",
    "To keep the other one, set monitoring_exporter = False and scrape it. To install gpufleet's, "
    "remove the other one, or set monitoring_exporter = True.",
)

ENGINE_THERE = warning(
    "GF917",
    "DCGM host engine exists",
    "{found} is a DCGM host engine, which serves no metrics. dcgm-exporter is installed with an "
    "engine of its own. NVIDIA does not support two engines on a node: only one of them gets the "
    "profiling counters (DCGM_FI_PROF_*).",
    "Remove the other engine if nothing needs it. If it runs on every GPU node and has the "
    "exporter's DCGM version, let the exporter use it: in monitoring_exporter_values, set "
    '"extraEnv": [{{"name": '
    '"NODE_IP", "valueFrom": {{"fieldRef": {{"fieldPath": "status.hostIP"}}}}}}, {{"name": '
    '"DCGM_REMOTE_HOSTENGINE_INFO", "value": "$(NODE_IP):{port}"}}].',
)

NO_GPU_NODES = warning(
    "GF873",
    "No GPU node",
    "No node has one of the labels {labels}, and none advertises nvidia.com/gpu.",
    "{advice}",
    advice="Label the nodes, or let node-feature-discovery do so, as the finding says.",
)

NODE_EXPORTER_THERE = info(
    "GF918",
    "Another node exporter exists",
    "{found} has port 9100 of the nodes; kube-prometheus-stack's node exporter is not installed.",
    "To have its metrics, create a ServiceMonitor or PodMonitor for the other one. To run both, "
    'set "nodeExporter": {{"enabled": True}} and another port, '
    '"prometheus-node-exporter": {{"service": {{"port": 9101, "targetPort": 9101}}}}, in '
    "monitoring_values.",
)

PROMETHEUS_MISSING = warning(
    "GF919",
    "Prometheus Operator without a Prometheus",
    "{found} is a Prometheus Operator, and the cluster has no Prometheus. None is installed: two "
    "operators would manage the same objects.",
    "Create a Prometheus that this operator runs, and run again. If another program reads "
    'ServiceMonitors, such as a PrometheusAgent, set monitoring_prometheus = "none" and '
    'monitoring_scrape = "service-monitor". To install kube-prometheus-stack in addition, set '
    'monitoring_prometheus = "install".',
)

SEVERAL_PROMETHEUSES = warning(
    "GF979",
    "Several Prometheuses",
    "Prometheus {used} is to scrape the exporter and to evaluate the alerts; the cluster also has "
    "{others}.",
    "If another one is to do that, set monitoring_monitor_labels to labels that only its "
    "serviceMonitorSelector selects, and monitoring_prometheus_url to its URL. To remove one that "
    "nothing uses: kubectl delete prometheus NAME -n NAMESPACE",
)

COUNTERS_NOT_PASSED = warning(
    "GF877",
    "Exporter does not get the list of counters",
    "The pods of dcgm-exporter {version} do not get {source}: {why}.{effect}",
    "To use that list, remove what prevents it, or use a newer chart, and run again. To keep "
    "another one, add the fields that the alerts need; docs/reference/alerts.md names these.",
)

COUNTERS_UNKNOWN = blocker(
    "GF910",
    "Counters unknown to the exporter",
    "dcgm-exporter {version} does not start with the list in {source}: it does not know {names}.",
    "Remove these lines from {source}, or use an exporter that knows them: cluster_chart_versions, "
    "or image.tag in monitoring_exporter_values.",
)

EXPORTER_VERSION_UNKNOWN = warning(
    "GF911",
    "Version of the exporter unknown",
    "The tag {tag} in monitoring_exporter_values does not name the version of dcgm-exporter, so "
    "its pods get the list of counters for {version}, the chart's. An exporter that does not know "
    "one of the fields does not start.",
    "Tag the image as NVIDIA does (3.1.8-3.1.5-ubuntu20.04 is DCGM 3.1.8, exporter 3.1.5), or set "
    "monitoring_counters to a list that it knows.",
)

NFD_THERE = info(
    "GF878",
    "Another NFD exists",
    "{found} already labels the nodes; a second NFD would conflict with it, so gpufleet's is not "
    "installed.",
    "Check that it labels nodes with GPUs: feature.node.kubernetes.io/pci-10de.present, or "
    "with the class of the device, pci-0302_10de.present or pci-0300_10de.present. "
    "device_plugin_nfd = False hides this, True installs gpufleet's in addition.",
)

OPERATOR_INSTALLS_DRIVERS = warning(
    "GF879",
    "GPU Operator would install drivers",
    "No node has a driver yet, so the GPU Operator is configured to install drivers in containers.",
    "Run `gpufleet apply` on the nodes first, or set gpu_operator_driver.",
)

OPERATOR_COLLIDES = blocker(
    "GF884",
    "GPU Operator conflicts with an existing component",
    "{found} already runs {chart}, and the GPU Operator installs its own: {why}.",
    'Remove it first ({remove}), or use cluster_stack = "device-plugin".',
)

POLICY_THERE = blocker(
    "GF885",
    "Another ClusterPolicy exists",
    "ClusterPolicy {policy} belongs to {owner}, not to release {release}. The operator reconciles "
    "only the oldest one.",
    "Remove that one with its operator first. That unloads the drivers it loaded: drain the nodes "
    "before. If only the namespace differs, set gpu_operator_namespace.",
)

DRIVERS_NOT_EVERYWHERE = warning(
    "GF886",
    "GPU nodes without a driver",
    "The GPU Operator is configured to install no drivers, because {have} have one; {lack} have "
    "none.",
    "Run `gpufleet apply` on those, or set gpu_operator_driver = True: nodes with a driver of "
    "the host are not changed.",
)

PODS_USE_GPUS = blocker(
    "GF970",
    "Pods use GPUs",
    "{count:pod uses|pods use} GPUs that {release} advertises, such as {pods}. "
    "Nothing was removed.",
    "Wait until they have ended, or delete them. To remove it anyway, set cluster_allow_disruption "
    "= True: they keep their GPUs until they restart, and then wait for a node that advertises "
    "some.",
)

RELEASE_STAYS = warning(
    "GF971",
    "Release stays",
    "Release {release} stays: {why}.",
    "If you do not need it: {removal}",
)

LEFT_IN_CLUSTER = info(
    "GF973",
    "Objects stay in the cluster",
    "{objects:object of gpufleet or of its releases stays|objects of gpufleet or of its releases "
    "stay}: others may use them, or have data in them.",
    "Delete what nothing needs: {commands}",
    description="CRDs, namespaces, RuntimeClasses and PersistentVolumeClaims stay: with a CRD go "
    "all objects of its kind, with a namespace all that is in it, with a claim its data. What the "
    "programs of a release created stays too, and the Secret with Grafana's password while a claim "
    "may hold Grafana's database.",
)

HELM_WOULD_DELETE = blocker(
    "GF978",
    "Uninstalling would delete what others need",
    "Helm would delete {parts} with release {release}, and with that {count:object|objects} that "
    "gpufleet did not create, such as {objects}. Nothing was removed.",
    "Move or delete these objects yourself, then run again. To keep a PersistentVolumeClaim, give "
    "it the annotation helm.sh/resource-policy: keep in the values of the release "
    "(grafana.persistence.annotations), and run `gpufleet apply` for this cluster first. Of a CRD "
    "that the chart no longer has, remove the annotation meta.helm.sh/release-name instead.",
)

SHARES_NOT_MEASURED = info(
    "GF912",
    "Metrics of pods that share a GPU are incomplete",
    "Pods share GPUs, but dcgm-exporter {version} names one pod per GPU in its metrics, or drops "
    "GPUs without a pod: autoscalers and GpuIdle see one of the pods only.",
    "Use dcgm-exporter 4.8.2 or newer (gpu-operator v26.7.0): cluster_chart_versions, or "
    "image.tag in monitoring_exporter_values.",
    description="With KUBERNETES_VIRTUAL_GPUS the exporter has metrics of every pod that shares a "
    "GPU, by time-slicing or MPS. Before 4.8.2 it then has none of GPUs without a pod, so gpufleet "
    "sets the variable from that version on.",
)

OPERATOR_NOT_SCRAPED = warning(
    "GF913",
    "Prometheus does not find the operator's exporter",
    "gpu-operator {version} creates no ServiceMonitor for its dcgm-exporter.",
    'Let gpufleet install Prometheus (monitoring_prometheus = "install"), which gets the job '
    "gpu-metrics, or add a job for the Service nvidia-dcgm-exporter, port 9400, to yours.",
)

HANDLER_UNKNOWN = warning(
    "GF977",
    "RuntimeClass without its handler",
    "RuntimeClass {name} has the handler {handler}, and the container runtime of {nodes} does not "
    "know it: pods that name the class do not start there.",
    "`gpufleet doctor` says if the configuration lacks the handler, or the runtime has not read "
    "it.",
)

SHARING_REFUSED = blocker(
    "GF972",
    "GPU sharing not possible",
    "The GPUs of {nodes} cannot be shared as gpu_sharing and gpu_mig request: {why}.",
    "{instead}",
    description="The keys of a host do not fit the device plugin, GPU Operator or DRA driver. The "
    "message says why. Nothing was done.",
    advice="Change the keys, or use another version of the chart, as the finding says.",
)

LABEL_OF_OTHERS = warning(
    "GF974",
    "Node has a label that contradicts its keys",
    "Node {node} has the label {label}={found}, which gpufleet did not set. Its GPUs are not "
    "shared as its host's keys request ({wanted}).",
    "Remove the label, and run again: `kubectl label node {node} {label}-`; or remove the keys "
    "gpu_sharing and gpu_mig of the host.",
)

LAYOUT_FIRST = warning(
    "GF921",
    "Node still has MIG devices",
    "Node {node} offers MIG devices, and gpu_mig of its host requests none: the label of its "
    "configuration stays, so that no pod gets a divided GPU as a whole one.",
    "Change the layout first (`gpufleet upgrade start INVENTORY --sharing`), then run "
    "`gpufleet apply` again.",
)

SHARING_WITH_PODS = blocker(
    "GF976",
    "Sharing would change while pods use GPUs",
    "Pods use GPUs of {nodes}, such as {pods}, and gpu_sharing or gpu_mig change how these GPUs "
    "are shared: new pods would get GPUs that such a pod has to itself.",
    "Drain the nodes (`kubectl drain NODE --ignore-daemonsets`), run again, and uncordon them. To "
    "change it anyway, set cluster_allow_disruption = True.",
)

KEYS_OF_A_NODE = blocker(
    "GF975",
    "Invalid keys of a node",
    "{host} has keys from which its cluster cannot be planned: {problem}",
    "Correct them in the inventory. `gpufleet plan INVENTORY --limit {host}` shows all problems.",
)

NO_EFFECT = warning(
    "GF887",
    "Settings have no effect",
    "{keys} have no effect: {chart} {lacks}.",
    "Remove them and configure the component that is there, if any, or {instead}.",
)
