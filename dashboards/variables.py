"""The variables at the top of a dashboard."""

from __future__ import annotations

from collections.abc import Sequence

from grafana_foundation_sdk.builders.dashboard import DatasourceVariable, QueryVariable
from grafana_foundation_sdk.models.dashboard import (
    DataSourceRef,
    VariableOption,
    VariableRefresh,
    VariableSort,
)

from dashboards import fields
from dashboards.queries import RESOURCE, Scope, gpu_nodes

SOURCE = DataSourceRef(type_val="prometheus", uid="${datasource}")
ALL = VariableOption(text="All", value="$__all", selected=True)
_CLUSTER = 'cluster=~"$cluster"'

QUERIES = {
    "cluster": f"label_values({fields.REPORTED}, cluster)",
    "node": f"query_result({gpu_nodes(Scope())})",
    "gpu": f"label_values({fields.REPORTED}{{{', '.join(Scope(node=True).of_gpu())}}}, gpu)",
    "namespace": (
        f'label_values(kube_pod_container_resource_requests{{resource="{RESOURCE}", {_CLUSTER}}}, '
        "namespace)"
    ),
}
LABELS = {"cluster": "Cluster", "node": "Node", "gpu": "GPU", "namespace": "Namespace"}
REGEX = {"node": r'/[{ ,]node="([^"]+)"/'}  # extracts the value from a result


def datasource() -> DatasourceVariable:
    """Which Prometheus."""
    return DatasourceVariable("datasource").label("Data source").type("prometheus")


def choices(names: Sequence[str]) -> list[QueryVariable]:
    """Each with All, which holds for series without the label too."""
    return [_choice(name) for name in names]


def _choice(name: str) -> QueryVariable:
    found = (
        QueryVariable(name)
        .label(LABELS[name])
        .datasource(SOURCE)
        .query({"query": QUERIES[name], "refId": name})
        .refresh(VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(VariableSort.NUMERICAL_ASC if name == "gpu" else VariableSort.ALPHABETICAL_ASC)
        .include_all(True)
        .all_value(".*")
        .multi(True)
        .current(ALL)
    )
    return found.regex(REGEX[name]) if name in REGEX else found
