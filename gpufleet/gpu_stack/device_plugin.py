"""Plans NVIDIA's device plugin and Node Feature Discovery, if the cluster lacks them. Pure."""

from __future__ import annotations

from dataclasses import replace

from gpufleet.core.findings import Finding, Severity
from gpufleet.core.merge import value_at
from gpufleet.core.names import list_names
from gpufleet.gpu_stack import findings
from gpufleet.gpu_stack.existing import device_plugins, existing_nfds, offering_nodes, silent_nodes
from gpufleet.gpu_stack.model import StackBuilder
from gpufleet.gpu_stack.sharing_checks import check_node_sharing, config_texts
from gpufleet.helm.builder import NFD, OPERATOR, PLUGIN, chart_values
from gpufleet.helm.release import Release
from gpufleet.kube.node_answers import DRA_LABEL, is_dra_node, load_node_kinds

TWO_PLUGINS = "both advertise the same GPUs"
PLUGIN_LIMITED = (
    "give device_plugin_values a nodeSelector with device-plugin: gpufleet, and label these nodes "
    "(kubectl label node NAME device-plugin=gpufleet)"
)
TWO_NFDS = "both write the same labels of nodes"


def plan_plugin(build: StackBuilder) -> Release | None:
    """Our device plugin, if `device_plugin_enabled` requests it, or nothing else advertises GPUs.

    If nodes advertise GPUs but no plugin is visible, that is a weaker sign of another plugin:
    settings that only our plugin supports override it.
    """
    wanted = build.settings.device_plugin
    own = only_for_plugin(build)
    others = [*_operators(build), *device_plugins(build)]
    nodes = offering_nodes(build)
    ours = build.managed(PLUGIN)
    replaced = wanted.enabled == "auto" and not ours and (others or (nodes and not own))
    if replaced:
        build.findings.append(plugin_there(build, others, nodes, PLUGIN_LIMITED))
    if replaced or wanted.enabled is False:
        instead = "remove it and set device_plugin_enabled = True"
        build.report_no_effect(own, PLUGIN, lacks="is not installed", instead=instead)
        return None
    if mine := build.managed(OPERATOR):
        build.findings.append(findings.OPERATOR_THERE(found=f"release {mine.ref}"))
    if others or nodes:
        build.report_twice(PLUGIN, others[0] if others else on_nodes(nodes), TWO_PLUGINS)
    check_node_sharing(build, PLUGIN)
    live = build.managed(PLUGIN)
    # without a configuration, a chart before 0.19.2 deletes the ServiceAccount that its pods keep:
    # https://github.com/kubernetes/kubernetes/issues/72519 and
    # https://github.com/NVIDIA/k8s-device-plugin/pull/1372 (read 2026-11-30)
    configured = live is not None and bool(value_at(live.values, "config.map"))
    configured = configured and not wanted.values.get("config")  # the user's stays as it is
    values = chart_values(
        "device-plugin/nvidia-device-plugin.yaml",
        gfd=wanted.gfd,
        mig_strategy="none" if build.sharing.modes else wanted.mig_strategy,
        runtime_class=wanted.runtime_class,
        configs=config_texts(build.sharing, keep=configured),
        default_config=build.sharing.default_name,
        gpu_labels=build.catalog.gpu_labels.all,
        dra_label=DRA_LABEL,
    )
    release = build.release(PLUGIN, wanted.namespace, values, wanted=wanted.values)
    away = {node.name for node in build.facts.nodes if is_dra_node(node.labels)}
    served = tuple(name for name in build.gpu_nodes if name not in {*build.sharing.dra, *away})
    needed = {PLUGIN: served} if build.gpu_nodes else {}
    if build.gpu_nodes and not served:
        needed[f"{PLUGIN}-gpu-feature-discovery"] = ()
    ready = replace(release.ready, nodes={**release.ready.nodes, **needed}, offering=True)
    return replace(release, ready=ready)


def plan_nfd(build: StackBuilder, plugin: Release | None, *, labels_nodes: bool) -> Release | None:
    """Our NFD, unless another NFD or `labels_nodes` replaces it. `plugin`: our plugin's release;
    its chart contains an NFD, which the user's values may enable."""
    wanted = build.settings.device_plugin
    others, auto = existing_nfds(build), wanted.nfd == "auto"
    if plugin and value_at(plugin.values, "nfd.enabled"):
        ours = f"release {build.ours[NFD]}" if wanted.nfd is True or build.managed(NFD) else ""
        if ours or others:
            build.findings.append(findings.NFD_IN_PLUGIN(found=ours or others[0]))
        return None
    if wanted.nfd is False or (auto and (labels_nodes or wanted.label_nodes)):
        return None
    if others and auto and not build.managed(NFD):
        build.findings.append(findings.NFD_THERE(found=others[0]))
        return None
    if others:
        build.report_twice(NFD, others[0], TWO_NFDS)
    values = chart_values(
        "device-plugin/node-feature-discovery.yaml",
        extra_label_namespaces=False,
        foreign=load_node_kinds().foreign,
    )
    return build.release(NFD, wanted.nfd_namespace, values, wanted=wanted.nfd_values)


def _operators(build: StackBuilder) -> list[str]:
    """GPU Operators that gpufleet did not install; each runs a device plugin."""
    ours = build.managed(OPERATOR)
    policies = [
        f"GPU Operator with ClusterPolicy {policy.name}"
        for policy in build.facts.cluster_policies
        if not ours or policy.release != ours.ref
    ]
    theirs = build.foreign(OPERATOR)
    return [*policies, *([f"GPU Operator of release {theirs.ref}"] if theirs else [])]


def only_for_plugin(build: StackBuilder) -> list[str]:
    """Names of the settings in use that only our plugin supports."""
    wanted, keys = build.settings.device_plugin, build.sharing.nodes.values()
    given = {
        "device_plugin_values": wanted.values,
        "device_plugin_time_slicing": wanted.time_slicing,
        "device_plugin_mig_strategy": wanted.mig_strategy != "none",
        "gpu_sharing": any(each.sharing not in (None, "none", "dra") for each in keys),
        "gpu_mig_strategy": any(each.mig_strategy for each in keys),
    }
    return [key for key, value in given.items() if value]


def plugin_there(build: StackBuilder, others: list[str], nodes: list[str], limited: str) -> Finding:
    """The finding that another plugin makes ours unnecessary. `nodes`: the result of
    offering_nodes(). `limited`: how to limit our plugin to the nodes without one."""
    if others:
        return findings.PLUGIN_THERE(found=others[0], lack="", limit="")
    silent, there = ", ".join(silent_nodes(build)), on_nodes(nodes)
    if not silent:
        return findings.PLUGIN_THERE(found=there, lack="", limit="")
    return findings.PLUGIN_THERE(
        Severity.WARNING,
        found=there,
        lack=f" Without a plugin: {silent}.",
        limit=f"For the nodes without a plugin only, set it to True and {limited}.",
    )


def on_nodes(names: list[str]) -> str:
    """The words for a plugin that is not visible in the cluster but advertises GPUs of `names`."""
    return f"A plugin that is no workload of the cluster, on node {list_names(names, 1)},"
