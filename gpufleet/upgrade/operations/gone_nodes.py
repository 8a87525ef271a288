"""Nodes of a cluster that was rebuilt, or that its user says is gone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpufleet.kube.operations.api import ClusterApi
from gpufleet.kube.operations.refused import ApiError
from gpufleet.upgrade.nodes import GONE
from gpufleet.upgrade.operations.cluster import ClusterNodes
from gpufleet.upgrade.operations.drain import Round
from gpufleet.upgrade.pods import Policy
from gpufleet.upgrade.states import Event


class GoneApi(ClusterApi):
    """Of a cluster that has nothing: no server is asked."""

    def __init__(self, context: str) -> None:
        self.context = context

    def list(self, *how: Any, **query: str) -> list[Any]:
        return []

    def _request(self, method: str, path: str, **how: Any) -> dict[str, Any]:
        kind, name = path.split("/")[-2:]
        nothing = {"kind": "Status", "reason": "NotFound", "details": {"kind": kind, "name": name}}
        raise ApiError(f"{method} {path}", 404, nothing, self.context)


class GoneNodes(ClusterNodes):
    """For an abort: each counts as deleted."""

    def __init__(self, context: str, run: str, nodes: Mapping[str, str], why: str) -> None:
        super().__init__(GoneApi(context), run, nodes)
        self.why = f"{GONE}: {why}"

    def clear(self, host: str, policy: Policy) -> Round:
        return Round(given_up=self.why)

    def give_back(self, host: str) -> str:
        return self.why

    def post_event(self, host: str, event: Event, reason: str) -> None:
        pass
