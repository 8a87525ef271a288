"""The settings of an upgrade, of one host and of a run. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpufleet.core.findings import Finding
from gpufleet.core.load_settings import load_role, unknown_keys
from gpufleet.upgrade.findings import runs as findings
from gpufleet.upgrade.settings import RUN_WIDE, UpgradeSettings


def load_settings(data: Mapping[str, Any]) -> tuple[UpgradeSettings | None, list[Finding]]:
    """The typed settings in the data of a host, or None and all errors."""
    wanted = {key: value for key, value in data.items() if str(key).startswith("upgrade_")}
    problems = unknown_keys(wanted, (UpgradeSettings,))
    settings = load_role(UpgradeSettings, data, problems)
    return (None, problems) if problems else (settings, [])


def of_run(
    by_host: Mapping[str, UpgradeSettings],
) -> tuple[UpgradeSettings | None, Finding | None]:
    """The settings that hold for a run, which all of its hosts must have; None without hosts."""
    first = next(iter(by_host.items()), None)
    if first is None:
        return None, None
    one, settings = first
    for other, theirs in by_host.items():
        for name in RUN_WIDE:
            mine, yours = getattr(settings, name), getattr(theirs, name)
            if mine != yours:
                key = f"{settings.prefix}{name}"
                return None, findings.SETTINGS_DIFFER(
                    key=key, first=mine, one=one, second=yours, other=other
                )
    return settings, None
