"""From pyinfra's flat host data to typed settings: every error of a host at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, TypeVar

from pydantic import ValidationError

from gpufleet.findings import Finding
from gpufleet.findings import settings as findings
from gpufleet.settings.driver import DriverSettings
from gpufleet.settings.exporter import ExporterSettings
from gpufleet.settings.model import RoleSettings
from gpufleet.settings.toolkit import ToolkitSettings

ROLES: tuple[type[RoleSettings], ...] = (DriverSettings, ToolkitSettings, ExporterSettings)
RoleModel = TypeVar("RoleModel", bound=RoleSettings)
SHOWN_VALUE = 60  # characters of a wrong value that an error repeats


@dataclass(frozen=True, slots=True)
class NodeSettings:
    """The settings of one host, one model per role."""

    driver: DriverSettings
    toolkit: ToolkitSettings
    exporter: ExporterSettings


def known_keys() -> list[str]:
    """Every data key that a role reads, for example `driver_branch`."""
    return [role.prefix + name for role in ROLES for name in role.model_fields]


def load_settings(data: Mapping[str, Any]) -> tuple[NodeSettings | None, list[Finding]]:
    """The typed settings in `data`, or None and every reason why they cannot be used."""
    problems = [_unknown(key) for key in sorted(data) if _is_unknown(key)]
    driver = _load(DriverSettings, data, problems)
    toolkit = _load(ToolkitSettings, data, problems)
    exporter = _load(ExporterSettings, data, problems)
    if driver:
        problems += _contradictions(driver)
    if problems or driver is None or toolkit is None or exporter is None:
        return None, problems
    return NodeSettings(driver, toolkit, exporter), []


def _is_unknown(key: str) -> bool:
    return key.startswith(tuple(role.prefix for role in ROLES)) and key not in known_keys()


def _unknown(key: str) -> Finding:
    close = get_close_matches(key, known_keys(), n=1)
    role = key.split("_", 1)[0]
    hint = (
        f"Did you mean {close[0]}?" if close else f"The keys of the role {role} are in its README."
    )
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
        problems += [_invalid(model.prefix, detail) for detail in error.errors()]
        return None


def _invalid(prefix: str, detail: Mapping[str, Any]) -> Finding:
    key = prefix + str(detail["loc"][0])
    message = str(detail["msg"]).removeprefix("Value error, ")
    if not message.startswith(("is ", "must ")):
        message = f"is not allowed: {message[0].lower()}{message[1:]}"
    return findings.INVALID_VALUE(key=key, value=_shown(detail["input"]), problem=message)


def _shown(value: object) -> str:
    """A wrong value as an error may repeat it: short, and without the password of a URL."""
    text = repr(value)
    if "://" in text and "@" in text:
        text = text.split("://")[0] + "://***@" + text.rsplit("@", 1)[1]
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
