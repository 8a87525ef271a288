"""What a user selects on a dashboard."""

from __future__ import annotations

from dataclasses import dataclass

from tests.monitoring.fleet import Gpu, Pod


@dataclass(frozen=True, slots=True)
class Choice:
    """The user's selection for each variable. An empty set is All. The cluster is fixed."""

    node: frozenset[str] = frozenset()
    gpu: frozenset[str] = frozenset()
    namespace: frozenset[str] = frozenset()

    def only(self, variables: tuple[str, ...]) -> Choice:
        """The choice on a dashboard that has these variables alone."""
        kept = {name: getattr(self, name) for name in self.__slots__ if name in variables}
        return Choice(**kept)

    def text(self, name: str) -> str:
        """The value of a variable as Grafana inserts it into a query."""
        chosen = sorted(getattr(self, name))
        return "(" + "|".join(chosen) + ")" if len(chosen) > 1 else (chosen or [".*"])[0]

    def takes(self, gpu: Gpu) -> bool:
        node = not self.node or gpu.node.name in self.node
        return node and (not self.gpu or str(gpu.index) in self.gpu)

    def takes_pod(self, pod: Pod) -> bool:
        node = not self.node or pod.node in self.node
        return node and (not self.namespace or pod.namespace in self.namespace)
