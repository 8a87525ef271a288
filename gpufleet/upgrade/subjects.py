"""What a run changes of its hosts; all else is the same. Pure."""

from __future__ import annotations

import json
from typing import Literal

from gpufleet.core.versions import branch_of

Subject = Literal["driver", "toolkit", "reboot"]
DISABLED: dict[Subject, str] = {  # why a host is left out that a user leaves out of the role
    "driver": "driver_enabled is False",
    "toolkit": "toolkit_enabled is False",
    "reboot": "driver_enabled is False",
}
SENTENCES: dict[Subject, str] = {
    "driver": "Change the driver of these hosts?",
    "toolkit": "Change the container toolkit of these hosts?",
    "reboot": "Reboot these hosts?",
}
RETURNS: dict[Subject, str] = {
    "driver": "Return these hosts to their earlier driver?",
    "toolkit": "Return these hosts to their earlier container toolkit?",
}


def data_of(subject: Subject, version: str, branch: str = "") -> dict[str, str]:
    """The data of a step, as --data has it. `version`: that the host is to have; `branch`: of the
    driver, whose newest version is meant."""
    data = {"upgrade_subject": json.dumps(subject)}
    if subject == "toolkit" and version:
        return data | {"toolkit_version": json.dumps(version)}
    if subject == "driver" and (version or branch):
        branch = str(branch_of(version)) if version else branch
        data |= {"driver_version": json.dumps(version or None)}
        data |= {"driver_branch": json.dumps(branch)}
    return data
