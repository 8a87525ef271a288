"""The settings of an upgrade: of one host, and of the whole run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpufleet.core.findings import Finding
from gpufleet.core.load_settings import load_role, unknown_keys
from gpufleet.host.upgrade_settings import UpgradeSettings
from gpufleet.upgrade.findings import runs as findings

RUN_WIDE = (
    "canaries", "wave", "wave_by", "max_unavailable", "soak", "max_failed", "max_failed_in_a_row",
    "window", "window_zone", "alerts", "alerts_ignored",
)  # fmt: skip


def share_of_hosts(share: str | int, total: int) -> int:
    """The number of hosts out of `total`, rounded down, but at least one."""
    if isinstance(share, int):
        return share
    return max(total * int(share.rstrip("%")) // 100, 1)


def load_upgrade_settings(data: Mapping[str, Any]) -> tuple[UpgradeSettings | None, list[Finding]]:
    """The typed settings in a host's data, or None and all errors."""
    wanted = {key: value for key, value in data.items() if str(key).startswith("upgrade_")}
    problems = unknown_keys(wanted, (UpgradeSettings,))
    settings = load_role(UpgradeSettings, data, problems)
    return (None, problems) if problems else (settings, [])


def of_run(by_host: Mapping[str, UpgradeSettings]) -> tuple[UpgradeSettings | None, Finding | None]:
    """The settings of the run, or None without hosts. Those of RUN_WIDE must be equal on all its
    hosts."""
    if not by_host:
        return None, None
    one, settings = next(iter(by_host.items()))
    for other, theirs in by_host.items():
        for name in RUN_WIDE:
            mine, yours = getattr(settings, name), getattr(theirs, name)
            if mine != yours:
                key = f"{settings.prefix}{name}"
                problem = f"{key} is {mine}, and {yours} for {other}: a run has one value"
                return None, findings.WRONG_SETTINGS(host=one, problem=problem)
    return settings, None
