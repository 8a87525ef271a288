"""Plans NVIDIA's GPU Operator, so that it leaves existing drivers and components alone. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from gpufleet.core.merge import merge_mappings, value_at
from gpufleet.core.versions import version_tuple
from gpufleet.gpu_stack import findings
from gpufleet.gpu_stack.device_plugin import TWO_NFDS, on_nodes, plugin_there
from gpufleet.gpu_stack.existing import (
    device_plugins,
    existing_exporters,
    existing_nfds,
    offering_nodes,
)
from gpufleet.gpu_stack.model import StackBuilder
from gpufleet.gpu_stack.removal import is_release_installed
from gpufleet.gpu_stack.sharing import sharing_variables
from gpufleet.gpu_stack.sharing_checks import check_node_sharing, config_texts
from gpufleet.helm.builder import EXPORTER, NFD, OPERATOR, PLUGIN, chart_values
from gpufleet.helm.release import Operands, Release
from gpufleet.kube.facts import ClusterNode, ClusterPolicy, ReleaseRef
from gpufleet.kube.node_answers import has_gpus, load_node_kinds
from gpufleet.monitoring.monitors import MonitorPlan

OPERAND_TIMEOUT = 180  # seconds: operands crash and restart until driver and toolkit are validated
COLLISIONS = {  # chart -> why it conflicts with the operator
    PLUGIN: "both would advertise the same GPUs",
    EXPORTER: "everything would be counted twice, and profiling counters have one reader",
}
Choice = Literal["auto"] | bool
SWITCH, MONITOR_SWITCH = "dcgmExporter.enabled", "dcgmExporter.serviceMonitor"
RELABELINGS = f"{MONITOR_SWITCH}.relabelings"
PLUGIN_SWITCH, PLUGIN_CONFIG = "devicePlugin.enabled", "devicePlugin.config.name"
NFD_AFFINITY = "node-feature-discovery.worker.affinity"
PLUGIN_DATA = "devicePlugin.config.data"  # configurations of the plugin
REMOVES_OURS = "`gpufleet remove INVENTORY --limit gpu_cluster`"
OPERATOR_LIMITED = (
    "label each node that has one (kubectl label node NAME nvidia.com/gpu.deploy.device-plugin="
    "false)"
)


def plan_operator(build: StackBuilder, monitors: MonitorPlan, hosts: Sequence[str]) -> Release:
    """Plan the operator's release. `hosts`: nodes that deploys/gpu_node.py manages."""
    wanted = build.settings.gpu_operator
    ref = ReleaseRef(wanted.namespace, OPERATOR)
    policy = _policy(build, ref)
    for chart, why in COLLISIONS.items():  # our own releases of plugin and exporter
        if ours := build.managed(chart):
            found, remove = f"Release {ours.ref}", f"helm -n {ours.namespace} uninstall {ours.name}"
            if is_release_installed(ours):
                found, remove = f"gpufleet's release {ours.ref}", REMOVES_OURS
            _collides(build, found, chart, why, remove)
    driver = _installs_driver(build, policy, hosts)
    toolkit = _chosen(build, "toolkit", wanted.toolkit)
    if toolkit == "auto":
        toolkit = _enabled(policy.spec, "toolkit", default=driver) if policy else driver
    plugin = build.settings.device_plugin
    _report_ignored_settings(build)
    check_node_sharing(build, OPERATOR)
    strategy = min(build.sharing.strategies, default="none")
    values = chart_values(
        "gpu-operator/gpu-operator.yaml",
        driver=driver,
        toolkit=toolkit,
        mig_strategy=strategy if build.has_feature(OPERATOR, "mig.strategy") else None,
        configs=config_texts(build.sharing) if build.has_feature(OPERATOR, PLUGIN_DATA) else {},
        default_config=build.sharing.default_name,
        nfd=not existing_nfds(build) if plugin.nfd == "auto" else plugin.nfd,
        plugin=_enables_plugin(build),
        exporter=_enables_exporter(build),
        monitor_switch=build.has_feature(OPERATOR, MONITOR_SWITCH),
        service_monitor=monitors.scrape == "service-monitor",
        monitor_labels=dict(monitors.labels),
        relabelings=build.has_feature(OPERATOR, RELABELINGS),
        foreign=load_node_kinds().foreign if build.has_feature(OPERATOR, NFD_AFFINITY) else (),
    )
    release = build.release(OPERATOR, wanted.namespace, values, wanted=_measuring_shares(build))
    if value_at(release.values, f"{MONITOR_SWITCH}.enabled"):
        monitoring = build.settings.monitoring
        build.findings += monitors.not_read(monitoring, build.facts, wanted.namespace)
    others = existing_nfds(build)
    if others and _enabled(release.values, "nfd", default=True):
        build.report_twice(NFD, others[0], TWO_NFDS)
    operands = _operands(build, release.values)
    return replace(
        release, ready=replace(release.ready, patience=OPERAND_TIMEOUT, operands=operands)
    )


def _measuring_shares(build: StackBuilder) -> Mapping[str, Any]:
    """The user's values, with the variable that makes the exporter report every pod of a GPU."""
    theirs = build.settings.gpu_operator.values
    if not build.has_feature(OPERATOR, PLUGIN_DATA):
        return theirs  # its plugin cannot share GPUs
    if not isinstance(theirs.get("dcgmExporter") or {}, Mapping):
        return theirs  # the chart rejects it
    given = value_at(theirs, "dcgmExporter.env")
    shared = sharing_variables(build, OPERATOR, build.charts[OPERATOR].version, given)
    return merge_mappings(theirs, {"dcgmExporter": {"env": shared}}) if shared else theirs


def _report_ignored_settings(build: StackBuilder) -> None:
    """Report settings of plugin and exporter that have no counterpart in this chart."""
    plugin, monitoring = build.settings.device_plugin, build.settings.monitoring
    given: dict[str, object] = {
        "device_plugin_values": plugin.values,
        "device_plugin_runtime_class": plugin.runtime_class,
        "monitoring_exporter_values": monitoring.exporter_values,
        "monitoring_exporter_memory": monitoring.exporter_memory,
        "monitoring_counters": monitoring.counters,
    }
    if not build.has_feature(OPERATOR, PLUGIN_DATA):
        given["device_plugin_time_slicing"] = plugin.time_slicing
    keys = [key for key, value in given.items() if value]
    lacks = f"{build.charts[OPERATOR].version} does not use them"
    instead = "set its values in gpu_operator_values"
    build.report_no_effect(keys, OPERATOR, lacks=lacks, instead=instead)


def _policy(build: StackBuilder, ref: ReleaseRef) -> ClusterPolicy | None:
    """The ClusterPolicy of our release, or None. Another ClusterPolicy is reported as a blocker."""
    ours = None
    for policy in build.facts.cluster_policies:
        if policy.release == ref:
            ours = policy
            continue
        owner = f"release {policy.release}" if policy.release else "no Helm release"
        build.findings.append(findings.POLICY_THERE(policy=policy.name, owner=owner, release=ref))
    return ours


def _collides(build: StackBuilder, found: str, chart: str, why: str, remove: str) -> None:
    build.findings.append(
        findings.OPERATOR_COLLIDES(found=found, chart=chart, why=why, remove=remove)
    )


def _leaves(
    build: StackBuilder, chart: str, found: list[str], *, switch: str, enabled: Any
) -> bool:
    """True if the operator leaves a component to an existing one. `found`: existing ones;
    `enabled`: the component's setting. An operator that cannot disable its component is blocked."""
    if not found or enabled is False or build.managed(chart):
        return False
    if enabled is True:
        build.report_twice(chart, found[0], COLLISIONS[chart])
        return False
    if not build.has_feature(OPERATOR, switch):
        why = f"gpu-operator {build.charts[OPERATOR].version} cannot disable its own"
        _collides(build, found[0], chart, why, "with the tool that installed it")
        return False
    return True


def _enables_plugin(build: StackBuilder) -> bool | None:
    """False to disable the operator's device plugin. None if the chart has no switch for it, or its
    default applies."""
    plugin = build.settings.device_plugin
    values = build.settings.gpu_operator.values
    wanted = _chosen(build, "devicePlugin", plugin.enabled)
    others = device_plugins(build)
    # with a ClusterPolicy, the visible plugin is the operator's
    nodes = [] if build.facts.cluster_policies else offering_nodes(build)
    sharing = build.sharing
    own = (sharing.shares, sharing.strategies, value_at(values, PLUGIN_CONFIG))
    if wanted == "auto" and nodes and not others and any(own):
        wanted = True  # as in plan_plugin(): a setting overrides the weaker sign
    found = others or ([on_nodes(nodes)] if nodes else [])
    left = _leaves(build, PLUGIN, found, switch=PLUGIN_SWITCH, enabled=wanted)
    if left:
        build.findings.append(plugin_there(build, others, nodes, OPERATOR_LIMITED))
    has_switch = build.has_feature(OPERATOR, PLUGIN_SWITCH)
    return False if has_switch and (left or wanted is False) else None


def _installs_driver(
    build: StackBuilder, policy: ClusterPolicy | None, hosts: Sequence[str]
) -> bool:
    """True if the operator installs drivers: the user's choice, or else the choice in its
    ClusterPolicy, or else True only if no node has a driver on its host."""
    wanted = _chosen(build, "driver", build.settings.gpu_operator.driver)
    if wanted != "auto":
        return wanted
    if policy:  # nodes with the operator's driver would lose it
        return _enabled(policy.spec, "driver", default=True)
    have = [node.name for node in build.facts.nodes if node.name in hosts or _shows(build, node)]
    if not have:
        build.findings.append(findings.OPERATOR_INSTALLS_DRIVERS())
        return True
    lack = [name for name in build.gpu_nodes if name not in have]
    if lack:
        build.findings.append(
            findings.DRIVERS_NOT_EVERYWHERE(have=", ".join(have), lack=", ".join(lack))
        )
    return False


def _chosen(build: StackBuilder, component: str, setting: Choice) -> Choice:
    """The switch of a component in the user's values, or else `setting`."""
    said = value_at(build.settings.gpu_operator.values, f"{component}.enabled")
    return said if isinstance(said, bool) else setting


def _shows(build: StackBuilder, node: ClusterNode) -> bool:
    """True if a node shows that it has a driver: it advertises GPUs, or GFD labelled it."""
    labels = build.catalog.gpu_labels.driver
    return has_gpus(node.capacity) or any(name in node.labels for name in labels)


def _enables_exporter(build: StackBuilder) -> bool | None:
    """Whether the operator's exporter is on, or None if the chart has no switch for it."""
    wanted = build.settings.monitoring
    enabled = wanted.exporter if wanted.enabled else False
    found = existing_exporters(build)
    left = _leaves(build, EXPORTER, found, switch=SWITCH, enabled=enabled)
    if left:
        build.findings.append(findings.EXPORTER_THERE(found=found[0]))
    if not build.has_feature(OPERATOR, SWITCH):
        return None
    return not left and enabled is not False


def _operands(build: StackBuilder, values: Mapping[str, Any]) -> Operands | None:
    """The operands to wait for, or None if the user's values disable the ClusterPolicy."""
    known = build.catalog.operands
    if value_at(values, "clusterPolicy.deployCR") is False:
        return None
    version = version_tuple(build.charts[OPERATOR].version)
    nodes = tuple(
        node.name
        for node in build.facts.nodes
        if node.name in build.gpu_nodes and not node.labels.items() & known.left_out.items()
    )
    pods = {
        operand.name: nodes
        for operand in known.everywhere
        if version >= version_tuple(operand.since)
        and (operand.switch is None or _enabled(values, operand.switch, default=True))
    }
    shared = _enabled(values, "sandboxWorkloads", default=False)  # nodes may run virtual machines
    return Operands(known, pods if nodes and not shared else {})


def _enabled(values: Mapping[str, Any], component: str, *, default: bool) -> bool:
    found = value_at(values, f"{component}.enabled")
    return default if found is None else bool(found)
