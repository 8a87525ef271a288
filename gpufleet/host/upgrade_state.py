"""The state of a host in its upgrade, as a JSON file on the host. Pure.

Every root user of the host can write the file. It is validated like other untrusted input, and it
affects only that host.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from enum import Enum
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, TypeAdapter

from gpufleet.core.quoting import quote_field
from gpufleet.core.secrets import hide_secrets
from gpufleet.core.visible import one_line
from gpufleet.facts.files import HOME
from gpufleet.host.upgrade_settings import Subject

STATE_FILE = f"{HOME}/upgrade.json"
SCHEMA = 1
MAX_STATE_BYTES = 4096  # bytes of the file
LONGEST_WHY = 1200  # characters
MAX_VERSION_CHARS = 1200  # characters: the layout of GPUs is longer than a version
LAST = 1e11  # seconds since 1970; a later time is invalid

Kind = Literal["upgrade", "rollback"]


class Phase(str, Enum):
    """The state of a host, as written in the file and by `gpufleet upgrade status`."""

    WAITING = "waiting"
    PREPARED = "prepared"  # packages are on the host, which still works
    DRAINING = "draining"
    CHANGING = "changing"  # packages and modules may have been changed
    RESTORING = "restoring"
    DONE = "done"
    REVERTED = "reverted"  # its change failed; it has its earlier version
    PASSED = "passed"  # it was not changed: `why` has the reason
    STUCK = "stuck"  # its roll-back failed


OPEN = frozenset({Phase.WAITING, Phase.PREPARED})  # its work is not affected yet
WORKING_PHASES = frozenset({Phase.DRAINING, Phase.CHANGING, Phase.RESTORING})
FINAL_PHASES = frozenset({Phase.DONE, Phase.REVERTED, Phase.PASSED, Phase.STUCK})
RETURNED = FINAL_PHASES - {Phase.STUCK}  # these return to service
FAILING = frozenset({Phase.RESTORING, Phase.REVERTED, Phase.STUCK})  # in the failure budget
Text = Annotated[str, Field(max_length=200)]
# of one byte each in the file, so that two of them always fit
VersionText = Annotated[str, Field(max_length=MAX_VERSION_CHARS, pattern=r"^[ !#-\[\]-~]*$")]


@dataclass(frozen=True, slots=True)
class HostState:
    """One host of a run. `since`: start of its phase by the controller's clock, in seconds since
    1970; `wave`: 0 for the canaries; `out`: it was taken out of service and has not returned;
    `behind`: an earlier run left it behind, so it returns after a check of it alone; `commanded`:
    upgrade_drain_command was begun; `attempts`: number of changes begun."""

    run: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9.-]{0,62}$")]
    kind: Kind
    subject: Subject
    before: VersionText
    target: VersionText
    group: Text
    wave: Annotated[int, Field(ge=0, le=10**6)]
    phase: Phase = Phase.WAITING
    since: Annotated[float, Field(ge=0, le=LAST)] = 0.0
    out: bool = False
    behind: bool = False
    commanded: bool = False
    attempts: Annotated[int, Field(ge=0, le=10**6)] = 0
    why: Annotated[str, Field(max_length=LONGEST_WHY)] = ""

    __pydantic_config__ = ConfigDict(extra="forbid")

    @property
    def ended(self) -> bool:
        return self.phase in FINAL_PHASES

    @property
    def unfinished(self) -> bool:
        """True if a run still has work on the host. A stuck host is not work for a run."""
        return (self.out or not self.ended) and self.phase is not Phase.STUCK

    @property
    def out_of_service(self) -> bool:
        return self.out or self.phase in WORKING_PHASES or self.phase is Phase.STUCK

    def moved(self, phase: Phase, now: float, why: str = "", **more: Any) -> HostState:
        """The state with a new phase. Without a new reason it keeps the earlier one."""
        why = one_line(hide_secrets(why))[:LONGEST_WHY] or self.why
        return replace(self, phase=phase, since=now, why=why, **more)


def both_reasons(roll_back: str, change: str) -> str:
    """Why a roll-back failed, then why the change did, each in half of the state's space.

    ("GF340 …", "GF550 h: DKMS did not build …") -> "GF340 …; its change: GF550 h: DKMS did …"
    """
    between = "; its change: "
    most = (LONGEST_WHY - len(between)) // 2
    return f"{quote_field(roll_back, most)}{between}{quote_field(change, most)}"


_STATE = TypeAdapter(HostState)


def state_text(state: HostState) -> str:
    """The content of the file, one line."""
    data = {"schema": SCHEMA, **asdict(state), "phase": state.phase.value}
    while len((text := json.dumps(data, ensure_ascii=False)).encode()) > MAX_STATE_BYTES:
        data["why"] = str(data["why"])[: len(str(data["why"])) // 2]
    return text


def parse_state(text: str) -> HostState | None:
    """The state in the file, or None if the file is empty. Raises ValueError if it is invalid."""
    if not text.strip():
        return None
    if len(text.encode()) > MAX_STATE_BYTES:
        raise ValueError("it is too large")
    try:
        data = json.loads(text)
    except RecursionError as error:
        raise ValueError("it is nested too deep") from error
    if not isinstance(data, dict) or data.pop("schema", None) != SCHEMA:
        raise ValueError(f"it does not have schema {SCHEMA}")
    state: HostState = _STATE.validate_python(data)
    for text in (state.before, state.target, state.group, state.why):
        if one_line(text) != text:
            raise ValueError("a text has characters that cannot be printed")
    return state
