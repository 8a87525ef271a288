"""The GPU stack of a deploy's cluster. It is planned once, and the roles carry it out."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import partial
from typing import Any

from pyinfra import host, state
from pyinfra.api.exceptions import NoGroupError

from gpufleet.core.inventory import CLUSTERS, NODES_GROUP, cluster_named_twice
from gpufleet.core.secrets import register_secret
from gpufleet.gpu_stack.model import NODE_MARK, StackPlan, node_names, runtime_class
from gpufleet.gpu_stack.node_labels import LabelChange, group_changes
from gpufleet.gpu_stack.operations.releases import ClusterRun, apply_release, current_cluster
from gpufleet.gpu_stack.plan import plan_stack
from gpufleet.gpu_stack.sharing_checks import refuse_with_pods
from gpufleet.helm.chart_choice import cluster_findings, load_charts
from gpufleet.host.operation import Commands, host_operation
from gpufleet.kube.findings import NAMED_TWICE
from gpufleet.kube.node_answers import LABEL_FIELD_MANAGER, gpu_pods_by_node
from gpufleet.kube.objects import MANAGED_BY_LABELS
from gpufleet.kube.operations.access import ClusterProblem
from gpufleet.kube.operations.api import ClusterApi
from gpufleet.kube.operations.objects import ensure_namespace, write_object
from gpufleet.run.reporting import RunReport


@dataclass(slots=True)
class Stack:
    """A cluster during a run, and the plan of its GPU stack."""

    run: ClusterRun
    plan: StackPlan
    applied: set[str] = field(default_factory=set)  # charts

    @property
    def uses_operator(self) -> bool:
        """True if NVIDIA's operator installs plugin and exporter."""
        return self.run.settings.cluster.stack == "gpu-operator"

    def apply(self, chart: str) -> None:
        """Apply the release of a chart, if the plan has one and nothing has failed yet."""
        self.applied.add(chart)
        release = next((found for found in self.plan.releases if found.chart == chart), None)
        if release and not self.run.report.failed:
            title = load_charts().charts[chart].title
            later = [found for found in self.plan.releases if found.chart not in self.applied]
            apply_release(f"Install {title}", self.run, release, later)

    def retire_configs(self) -> None:
        """Remove the labels of configurations that the plugin will not have: it would not start."""
        retired = [change for change in self.plan.config_labels if change.retires]
        if retired:
            set_config_labels("Remove labels of old sharing", self, retired, False)

    def share_gpus(self) -> None:
        """Set the labels of the plugin's configurations, which its release has now, and of nodes
        that it leaves to the DRA driver."""
        for sentence, changes in group_changes(self.plan.config_labels).items():
            set_config_labels(sentence, self, changes, True)

    def apply_rest(self) -> None:
        """Apply the releases that no role has applied yet."""
        for release in self.plan.releases:
            if release.chart not in self.applied:
                self.apply(release.chart)


def current_stack(*, preview: bool = False) -> Stack | None:
    """The stack of this deploy's cluster, or None if the host is not a cluster or is stopped.

    Blockers are reported together, before anything is changed.
    """
    report = RunReport.of(state)
    if CLUSTERS not in host.groups:
        report.left_out.add(host.name)
        return None
    if is_named_twice():
        return None
    run = current_cluster(supported_only=True, preview=preview)
    if run is None:
        return None
    catalog = load_charts()
    data = _node_data()
    plan = plan_stack(run.settings, run.facts, catalog, node_names(data), data)
    about = cluster_findings(catalog, run.facts.server.full, date.today())
    run.report.findings += [*about, *plan.findings]
    if plan.blockers:
        report.block(host, [])
        return None
    return Stack(run, plan)


def is_named_twice() -> bool:
    """True if the inventory has the cluster of this deploy twice, which stops it."""
    if not cluster_named_twice(host.name, host.groups):
        return False
    report = RunReport.of(state)
    report.host(host.name).kind = "cluster"
    report.block(host, [NAMED_TWICE(name=host.name)])
    return True


def _node_data() -> dict[str, dict[str, Any]]:
    """Each host in the inventory's group gpu_nodes, and its data."""
    try:
        hosts = state.inventory.get_group(NODES_GROUP)
    except NoGroupError:
        return {}
    return {found.name: found.data.dict() for found in hosts}


@host_operation
def label_nodes(api: ClusterApi, names: Sequence[str], label: str, value: str) -> Commands:
    """
    Label nodes, so that charts select the ones with GPUs.

    + api: of the cluster
    + names: nodes that lack it
    + label: its key
    + value: its value
    """
    if not names:
        host.noop("every GPU node has the label")
        return

    def label_all() -> None:
        for name in names:
            metadata = {"labels": {label: value}, "annotations": {NODE_MARK: label}}
            api.merge(f"/api/v1/nodes/{name}", {"metadata": metadata})

    yield write_object("label nodes", label_all)


@host_operation
def set_config_labels(stack: Stack, changes: Sequence[LabelChange], keep: bool) -> Commands:
    """
    Set or remove the labels that say how nodes offer their GPUs.

    + stack: of the cluster
    + changes: the nodes, and the label of each
    + keep: False to remove labels
    """
    for change in changes:
        action = f"set the label {change.label} of node {change.node}"
        yield write_object(action, partial(_set_config_label, stack.run, change, keep))


def _set_config_label(run: ClusterRun, change: LabelChange, keep: bool) -> None:
    """Server-side apply: fields of ours that are not in the body are removed; a label that another
    user has set since the plan is a conflict. With the uid, no deleted node is created again."""
    api, path = run.cluster.api, f"/api/v1/nodes/{change.node}"
    node = api.find(path)
    if node is None:
        return
    if change.disturbs:
        pods = api.list("/api/v1/pods", fieldSelector=f"spec.nodeName={change.node}")
        if found := refuse_with_pods(run.settings, gpu_pods_by_node(pods, [node]), [change.node]):
            raise ClusterProblem(found)
    about = {"name": change.node, "uid": node["metadata"]["uid"]}
    labels = {change.label: change.after} if keep and change.after else {}
    body = {"apiVersion": "v1", "kind": "Node", "metadata": {**about, "labels": labels}}
    api.apply(path, body, manager=LABEL_FIELD_MANAGER, force=False)


@host_operation
def ensure_runtime_class(api: ClusterApi, name: str | None) -> Commands:
    """
    Create the RuntimeClass by which pods select the container runtime of that name.

    + api: of the cluster
    + name: of the class and of its handler, or None for no class; an existing class is not changed
    """
    if name is None:
        host.noop("device_plugin_runtime_class is not set: no RuntimeClass is created")
        return
    group = api.get("/apis/node.k8s.io")["preferredVersion"]["groupVersion"]
    classes = f"/apis/{group}/runtimeclasses"
    if api.find(f"{classes}/{name}"):
        host.noop(f"RuntimeClass {name} exists")
        return
    body = runtime_class(name, group)
    yield write_object(f"create RuntimeClass {name}", partial(api.create, classes, body))


@host_operation
def ensure_password(api: ClusterApi, secret: tuple[str, str] | None, user: str) -> Commands:
    """
    Generate Grafana's password once; it is stored only in the Secret.

    + api: of the cluster
    + secret: namespace and name, or None if the user provides a Secret
    + user: the user with this password
    """
    if secret is None or api.find("/api/v1/namespaces/{}/secrets/{}".format(*secret)):
        host.noop("Grafana's password exists")
        return
    create = partial(_create_password, api, *secret, user)
    yield write_object("create Secret {}/{}".format(*secret), create, secret=True)


def _create_password(api: ClusterApi, namespace: str, name: str, user: str) -> None:
    password = secrets.token_urlsafe(24)
    register_secret(password)
    body = {
        "metadata": {"name": name, "labels": MANAGED_BY_LABELS},
        "stringData": {"admin-user": user, "admin-password": password},
    }
    ensure_namespace(api, namespace)
    api.create(f"/api/v1/namespaces/{namespace}/secrets", body)
