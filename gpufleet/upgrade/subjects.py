"""The subjects of a run: driver, container toolkit or reboot. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gpufleet.core.versions import branch_of
from gpufleet.host.upgrade_settings import Subject

DISABLED: dict[Subject, str] = {  # why a host is left out if a user disabled the role
    "driver": "driver_enabled is False",
    "toolkit": "toolkit_enabled is False",
    "reboot": "driver_enabled is False",
}
SENTENCES: dict[Subject, str] = {
    "driver": "Change the driver of these hosts?",
    "toolkit": "Change the container toolkit of these hosts?",
    "reboot": "Reboot these hosts?",
}


@dataclass(frozen=True, slots=True)
class WantedChange:
    """The requested change. A version or branch of "" means the inventory's."""

    subject: Subject = "driver"
    version: str = ""
    branch: str = ""
    downgrade: bool = False  # a target may be older than the installed version


def data_of(subject: Subject, version: str, branch: str = "") -> dict[str, Any]:
    """The data of a step. `version`: the target; `branch`: of the driver, to get its newest
    version."""
    permission = f"{'toolkit' if subject == 'toolkit' else 'driver'}_allow_change"
    data: dict[str, Any] = {"upgrade_subject": subject, permission: True}
    if subject == "toolkit" and version:
        return data | {"toolkit_version": version}
    if subject == "driver" and (version or branch):
        branch = str(branch_of(version)) if version else branch
        return data | {"driver_version": version or None, "driver_branch": branch}
    return data
