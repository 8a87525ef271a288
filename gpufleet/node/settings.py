"""From pyinfra's flat host data to typed settings: every error of a host at once."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, TypeVar

from pydantic import ValidationError

from gpufleet.core.findings import Finding
from gpufleet.core.findings import settings as findings
from gpufleet.core.masks import masked
from gpufleet.core.redact import redact
from gpufleet.core.settings import DIGITS_LOST, RoleSettings
from gpufleet.driver.settings import DriverSettings
from gpufleet.exporter.settings import ExporterSettings
from gpufleet.gpu_stack.settings import (
    ClusterAccess,
    DevicePluginSettings,
    GpuOperatorSettings,
    MonitoringSettings,
)
from gpufleet.toolkit.settings import ToolkitSettings

NODE_ROLES: tuple[type[RoleSettings], ...] = (DriverSettings, ToolkitSettings, ExporterSettings)
CLUSTER_ROLES: tuple[type[RoleSettings], ...] = (
    ClusterAccess,
    DevicePluginSettings,
    MonitoringSettings,
    GpuOperatorSettings,
)
ROLES = NODE_ROLES + CLUSTER_ROLES  # a misspelt key is found wherever it stands
TYPES = {
    "bool_type": "True or False, without quotes",
    "int_type": "a whole number, without quotes",
    "string_type": "text, in quotes",
}
RoleModel = TypeVar("RoleModel", bound=RoleSettings)
NEAR = 0.92  # of two keys that one slip of the finger makes of each other: 1 is the same
_QUERY = re.compile(r"(?P<mark>[?#])[^\s'\"]+")
SHOWN_VALUE = 60  # characters of a wrong value that an error repeats


@dataclass(frozen=True, slots=True)
class NodeSettings:
    """The settings of one host, one model per role."""

    driver: DriverSettings
    toolkit: ToolkitSettings
    exporter: ExporterSettings


@dataclass(frozen=True, slots=True)
class ClusterSettings:
    """The settings of one cluster, one model per role."""

    cluster: ClusterAccess
    device_plugin: DevicePluginSettings
    monitoring: MonitoringSettings
    gpu_operator: GpuOperatorSettings


def known_keys() -> list[str]:
    """Every data key that a role reads, for example `driver_branch`."""
    return [role.prefix + name for role in ROLES for name in role.model_fields]


def load_settings(data: Mapping[str, Any]) -> tuple[NodeSettings | None, list[Finding]]:
    """The typed settings in `data`, or None and every reason why they cannot be used."""
    problems = [_unknown(key) for key in sorted(filter(_is_unknown, data))]
    driver = _load(DriverSettings, data, problems)
    toolkit = _load(ToolkitSettings, data, problems)
    exporter = _load(ExporterSettings, data, problems)
    if driver:
        problems += _contradictions(driver)
    if problems or driver is None or toolkit is None or exporter is None:
        return None, problems
    return NodeSettings(driver, toolkit, exporter), []


def load_cluster_settings(
    data: Mapping[str, Any],
) -> tuple[ClusterSettings | None, list[Finding]]:
    """The typed settings of a cluster in `data`, or None and every reason against them."""
    problems = [_unknown(key) for key in sorted(filter(_is_unknown, data))]
    cluster = _load(ClusterAccess, data, problems)
    device_plugin = _load(DevicePluginSettings, data, problems)
    monitoring = _load(MonitoringSettings, data, problems)
    gpu_operator = _load(GpuOperatorSettings, data, problems)
    if cluster and cluster.chart_dir and isinstance(cluster.chart_repository, str):
        problems.append(_two_places(cluster.chart_dir, cluster.chart_repository))
    if cluster and not cluster.chart_plain_http:
        problems += [_without_tls(url) for url in _repositories(cluster) if _is_plain(url)]
    if problems or not (cluster and device_plugin and monitoring and gpu_operator):
        return None, problems
    return ClusterSettings(cluster, device_plugin, monitoring, gpu_operator), []


def _is_unknown(key: object) -> bool:
    """Whether a key is meant for a role and none reads it; keys of others are theirs."""
    if not isinstance(key, str) or key in known_keys():
        return False
    return key.startswith(tuple(role.prefix for role in ROLES)) or _near_miss(key) is not None


def _near_miss(key: str) -> str | None:
    """The key that one with a slip in it was meant to be: `Driver-enabled`, `toolkitt_version`."""
    plain = key.lower().replace("-", "_")
    close = get_close_matches(plain, known_keys(), n=1, cutoff=NEAR)
    return close[0] if close and close[0][0] == plain[:1] else None


def _unknown(key: str) -> Finding:
    close = _near_miss(key) or next(iter(get_close_matches(key, known_keys(), n=1)), None)
    if close:
        return findings.UNKNOWN_KEY(key=key, suggestion=f"Did you mean {close}?")
    prefix = next(role.prefix for role in ROLES if key.startswith(role.prefix))
    role = prefix.rstrip("_").replace("_", "-")
    hint = f"The keys of the role {role} are in its README."
    return findings.UNKNOWN_KEY(key=key, suggestion=hint)


def _load(
    model: type[RoleModel], data: Mapping[str, Any], problems: list[Finding]
) -> RoleModel | None:
    values = {
        name: data[model.prefix + name]
        for name in model.model_fields
        if model.prefix + name in data
    }
    try:
        return model.model_validate(values)
    except ValidationError as error:
        by_key: dict[str, list[Mapping[str, Any]]] = {}
        for detail in error.errors():
            by_key.setdefault(model.prefix + str(detail["loc"][0]), []).append(detail)
        problems += [_invalid(key, details) for key, details in by_key.items()]
        return None


def _invalid(key: str, details: list[Mapping[str, Any]]) -> Finding:
    """One finding per key, also where its value fits none of several types."""
    of_items = [detail for detail in details if any(type(part) is int for part in detail["loc"])]
    whole = [detail for detail in details if detail not in of_items]
    problem = "; and ".join(map(_problem_of_item, of_items)) or "; or ".join(map(problem_of, whole))
    if details[0]["type"] == DIGITS_LOST:
        problem += f" (on the command line: --data '{key}=\"{details[0]['ctx']['example']}\"')"
    value = _shown((whole or of_items)[0]["input"])
    return findings.INVALID_VALUE(key=key, value=value, problem=problem)


def _problem_of_item(detail: Mapping[str, Any]) -> str:
    """What is wrong with one item of a list, or one entry of a mapping."""
    allowed = detail.get("ctx", {}).get("expected") if detail["type"] == "literal_error" else None
    item = _shown(detail["input"])
    return f"holds {item}, which {f'is not {allowed}' if allowed else problem_of(detail)}"


def problem_of(detail: Mapping[str, Any]) -> str:
    """What is wrong with a value, of an error that pydantic gives, as the rest of a sentence."""
    if detail["type"] in TYPES:
        return f"must be {TYPES[detail['type']]}"
    message = str(detail["msg"]).removeprefix("Value error, ")
    if message.startswith(("is ", "must ", "names ")):
        return message
    return f"is not allowed: {message[0].lower()}{message[1:]}"


def _shown(value: object) -> str:
    """A wrong value as an error may repeat it: short, and without what may be secret."""
    text = redact(repr(masked(value) if isinstance(value, Mapping) else value))
    if "://" in text and "@" in text:
        text = text.split("://")[0] + "://***@" + text.rsplit("@", 1)[1]
    if "://" in text:
        text = _QUERY.sub(r"\g<mark>***", text)
    return text if len(text) <= SHOWN_VALUE else text[: SHOWN_VALUE - 1] + "…"


def _contradictions(driver: DriverSettings) -> list[Finding]:
    if driver.branch and driver.version and not driver.version.startswith(driver.branch + "."):
        return [
            findings.CONTRADICTION(
                first=f'driver_branch = "{driver.branch}"',
                second=f'driver_version = "{driver.version}"',
                problem=f"{driver.version} is not of branch {driver.branch}",
            )
        ]
    return []


def _repositories(cluster: ClusterAccess) -> list[str]:
    named = cluster.chart_repository
    return list(named.values()) if isinstance(named, dict) else [named] if named else []


def _is_plain(url: str) -> bool:
    return url.startswith("http://")


def _without_tls(url: str) -> Finding:
    return findings.CONTRADICTION(
        first=f'cluster_chart_repository = "{url}"',
        second="cluster_chart_plain_http = False",
        problem="without TLS anybody between can change charts; use https://, or allow it where "
        "the network is yours alone",
    )


def _two_places(folder: str, repository: str) -> Finding:
    return findings.CONTRADICTION(
        first=f'cluster_chart_dir = "{folder}"',
        second=f'cluster_chart_repository = "{repository}"',
        problem="each says where all charts come from; name single charts in "
        "cluster_chart_repository to fetch those alone",
    )
