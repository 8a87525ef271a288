"""The Prometheus of a cluster: its path through the API server, and its answers. Pure.

Source: https://prometheus.io/docs/prometheus/latest/querying/api/ (read 2026-11-29)
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gpufleet.core.merge import value_at
from gpufleet.core.quoting import quote_field

Series = dict[str, Any]
LoadedRules = dict[tuple[str, str], str]  # group, name -> why its evaluation fails, or ""

NAME_OF_APP = "app.kubernetes.io/name"
# A ServiceMonitor becomes a target minutes after its pod starts: the operator writes the
# configuration, the kubelet updates the mounted Secret, the reloader sees it.
# Source: https://kubernetes.io/docs/concepts/configuration/secret/#mounted-secrets-are-updated-automatically
DISCOVERY_SECONDS = 180
MAX_SERVICE_CHARS = 200  # characters of an answer that is not JSON
NOT_JSON = "the response is not the API server's"  # but for example a log-in page
NOT_PROMETHEUS = "the answer is not that of a Prometheus"


@dataclass(frozen=True, slots=True)
class PrometheusService:
    """A Service of a Prometheus. `path`: of its API, through the API server's proxy; `operated`: an
    operator runs it; `whole`: each of its pods has every target."""

    namespace: str
    name: str
    path: str
    operated: bool = False
    whole: bool = True

    @property
    def full_name(self) -> str:
        return f"{self.namespace}/{self.name}"

    def __str__(self) -> str:
        return f"Prometheus {self.full_name}"


def selects_prometheus(selector: Mapping[str, str] | None) -> bool:
    """True if the selector of a Service selects the pods of a Prometheus."""
    return (selector or {}).get(NAME_OF_APP) == "prometheus"


def choose_prometheus(
    services: Sequence[Mapping[str, Any]], resources: Iterable[Mapping[str, Any]], ours: str
) -> PrometheusService | None:
    """The Service to ask. One of an operator is preferred, such as ours to Istio's.

    `services`: those whose selector fits; `resources`: Prometheus objects; `ours`: the namespace
    that the inventory names."""
    specs = {one["metadata"]["namespace"]: one["spec"] for one in reversed([*resources])}

    def order(service: Mapping[str, Any]) -> tuple[bool, bool]:
        space = service["metadata"]["namespace"]
        return space not in specs, space != ours

    served = [service for service in services if service["spec"].get("ports")]
    found = min(served, key=order, default=None)
    if found is None:
        return None
    return _service(found, specs.get(found["metadata"]["namespace"]))


def _service(service: Mapping[str, Any], spec: Mapping[str, Any] | None) -> PrometheusService:
    """`spec`: the Prometheus object's, or None. The user chooses port, prefix and TLS."""
    own = spec or {}
    name, space = service["metadata"]["name"], service["metadata"]["namespace"]
    tls = (own.get("web") or {}).get("tlsConfig") is not None
    place = f"{'https:' if tls else ''}{name}:{service['spec']['ports'][0]['port']}"
    prefix = str(own.get("routePrefix") or "").rstrip("/")
    path = f"/api/v1/namespaces/{space}/services/{place}/proxy{prefix}/api/v1"
    whole = (own.get("shards") or 1) == 1
    return PrometheusService(space, name, path, operated=spec is not None, whole=whole)


def decode_response(status: int, data: bytes) -> dict[str, Any] | str:
    """The JSON object in a response, or the reason why it has no object."""
    if status >= 400:
        return f"{status} {quote_field(data.decode('utf-8', 'replace'), MAX_SERVICE_CHARS)}"
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        return NOT_JSON
    return found if isinstance(found, dict) else NOT_JSON


def series_of(answer: Mapping[str, Any] | str) -> list[Series] | str:
    """The series in the answer to an instant query, or the reason why it has no series."""
    if isinstance(answer, str):
        return answer
    found = value_at(answer, "data.result")
    if isinstance(found, list) and all(map(_is_series, found)):
        return found
    return NOT_PROMETHEUS


def _is_series(found: Any) -> bool:
    """True for {"metric": {NAME: TEXT}, "value": [TIME, TEXT]}."""
    if not (isinstance(found, dict) and isinstance(found.get("metric"), dict)):
        return False
    texts = all(isinstance(each, str) for each in found["metric"].values())
    return texts and isinstance(found.get("value"), list) and len(found["value"]) == 2


def up_by_target(series: Iterable[Mapping[str, Any]], word: str = "") -> dict[str, str]:
    """Pod or address -> value of `up`, for targets with `word` in a label."""
    return {
        each["metric"].get("pod") or each["metric"].get("instance", ""): each["value"][1]
        for each in series
        if word in " ".join(each["metric"].values())
    }


def rules_of(answer: Mapping[str, Any] | str) -> LoadedRules | str:
    """The rules in the answer to GET /rules, or the reason why it has no rules."""
    if isinstance(answer, str):
        return answer
    found: LoadedRules = {}
    try:
        for group in answer["data"]["groups"]:
            for rule in group["rules"]:
                name = str(group["name"]), str(rule["name"])
                found[name] = found.get(name) or _rule_error(rule)
    except (KeyError, TypeError, AttributeError):
        return NOT_PROMETHEUS
    return found


def _rule_error(rule: Mapping[str, Any]) -> str:
    failed = rule.get("health") == "err"
    return str(rule.get("lastError") or "it gives no reason") if failed else ""
