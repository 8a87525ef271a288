"""The subjects of a run: driver, container toolkit, reboot or layout of GPUs. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gpufleet.core.versions import branch_of
from gpufleet.gpu.lines import offered_resources
from gpufleet.host.upgrade_settings import Subject
from gpufleet.host.upgrade_state import HostState

OTHER_SUBJECTS: tuple[Subject, ...] = ("toolkit", "reboot", "sharing")  # each has an option
DISABLED: dict[Subject, str] = {  # why a host is left out if a user disabled the role
    "driver": "driver_enabled is False",
    "toolkit": "toolkit_enabled is False",
    "reboot": "driver_enabled is False",
    "sharing": "neither gpu_mig nor gpu_ecc is set",
}
SENTENCES: dict[Subject, str] = {
    "driver": "Change the driver of these hosts?",
    "toolkit": "Change the container toolkit of these hosts?",
    "reboot": "Reboot these hosts?",
    "sharing": "Change the layout of the GPUs of these hosts?",
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
    if subject == "sharing":
        return {"upgrade_subject": subject} | ({"gpu_lines": version} if version else {})
    permission = f"{'toolkit' if subject == 'toolkit' else 'driver'}_allow_change"
    data: dict[str, Any] = {"upgrade_subject": subject, permission: True}
    if subject == "toolkit" and version:
        return data | {"toolkit_version": version}
    if subject == "driver" and (version or branch):
        branch = str(branch_of(version)) if version else branch
        return data | {"driver_version": version or None, "driver_branch": branch}
    return data


def offers_after(state: HostState, version: str) -> tuple[Mapping[str, int], ...]:
    """What a node may offer after a step to `version`. () if it must offer what it did before: its
    layout stays, or its roll-back returns it."""
    if state.subject != "sharing" or version != state.target:
        return ()
    try:
        return offered_resources(version)
    except ValueError:  # a user of the host changed its state
        return ()
