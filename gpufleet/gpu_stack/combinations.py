"""Judges the charts of a cluster by the known-bad combinations. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from gpufleet.combinations.judge import judge_combinations
from gpufleet.combinations.models import Combinations, Component, Components, Trait
from gpufleet.core.findings import Finding
from gpufleet.core.merge import value_at
from gpufleet.helm.builder import OPERATOR, PLUGIN
from gpufleet.helm.release import Release
from gpufleet.kube.facts import ClusterFacts, ClusterNode

JUDGED_CHARTS: dict[str, Component] = {OPERATOR: "gpu-operator", PLUGIN: "nvidia-device-plugin"}
REPORTED_RUNTIMES: dict[str, Component] = {
    "docker": "docker",
    "containerd": "containerd",
    "cri-o": "crio",
}
OPERATOR_INSTALLS: dict[str, Trait] = {
    "driver.enabled": "operator-driver",
    "toolkit.enabled": "operator-toolkit",
}
IN_VERSION: dict[str, Trait] = {"+k3s": "k3s", "+rke2": "rke2", "-gke.": "gke"}


def judge_cluster(
    releases: Sequence[Release], facts: ClusterFacts, table: Combinations
) -> list[Finding]:
    """A finding for each known-bad combination of a chart with the server or with a node's runtime.

    Example: GPU Operator 26.3.3 on a node that reports containerd://2.3.2.
    """
    wanted = _wanted(releases)
    if not wanted.versions:
        return []
    runtimes = dict.fromkeys(map(_runtime, facts.nodes)) or {(): None}
    found = [
        judge_combinations(_installed(facts, dict(runtime)), wanted, table) for runtime in runtimes
    ]
    return list(dict.fromkeys(finding for each in found for finding in each))


def _wanted(releases: Sequence[Release]) -> Components:
    """The charts, and what the GPU Operator installs on nodes beside its operands."""
    traits = frozenset(
        trait
        for each in releases
        for switch, trait in OPERATOR_INSTALLS.items()
        if each.chart == OPERATOR and value_at(each.values, switch) is not False
    )
    return Components(_judged((each.chart, each.version) for each in releases), traits)


def _runtime(node: ClusterNode) -> tuple[tuple[Component, str], ...]:
    """The runtime of a node: (("containerd", "2.1.5"),), or () if it is not known."""
    name, _, version = node.runtime.partition("://")
    return ((REPORTED_RUNTIMES[name], version),) if name in REPORTED_RUNTIMES else ()


def _installed(facts: ClusterFacts, runtime: dict[Component, str]) -> Components:
    """The server, a node's runtime, and gpufleet's charts as they are now."""
    charts = _judged((each.chart, each.chart_version) for each in facts.releases)
    server = facts.server.full
    traits = frozenset(trait for mark, trait in IN_VERSION.items() if mark in server)
    return Components({"kubernetes": server, **runtime, **charts}, traits)


def _judged(charts: Iterable[tuple[str, str]]) -> dict[Component, str]:
    return {JUDGED_CHARTS[name]: version for name, version in charts if name in JUDGED_CHARTS}
