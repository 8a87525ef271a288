"""Nodes of a cluster that was rebuilt, or that is not reached any more by its context."""

from __future__ import annotations

from collections.abc import Mapping

from gpufleet.kube.operations.api import ClusterApi
from gpufleet.upgrade.operations.cluster import ClusterNodes
from gpufleet.upgrade.operations.evictions import Round
from gpufleet.upgrade.pods import Policy
from gpufleet.upgrade.states import Event


class GoneNodes(ClusterNodes):
    """For an abort: each counts as deleted. Nothing is asked of the other cluster, nor written."""

    def __init__(self, api: ClusterApi, run: str, nodes: Mapping[str, str], why: str) -> None:
        super().__init__(api, run, nodes)
        self.why = f"its node is not in the cluster any more: {why}"

    def clear(self, host: str, policy: Policy) -> Round:
        return Round(given_up=self.why)

    def taken_back(self, host: str) -> str:
        return ""

    def give_back(self, host: str) -> str:
        return self.why

    def leave_behind(self, host: str, reason: str) -> None:
        pass

    def post_event(self, host: str, event: Event, reason: str) -> None:
        pass
