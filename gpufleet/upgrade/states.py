"""What can happen to one host of a run, and in which order. Pure."""

from __future__ import annotations

from enum import Enum


class State(str, Enum):
    """Where a host is. The texts are those of the record and of `gpufleet upgrade status`."""

    WAITING = "waiting"
    READY = "prepared"
    DRAINING = "draining"
    DRAINED = "drained"
    CHANGING = "changing"
    CHANGED = "changed"
    FAILED = "failed"  # its change; it is to be rolled back
    RESTORING = "rolling back"
    RESTORED = "rolled back"  # still out of service
    LEAVING = "not drained"  # still to be returned to service
    UNCHANGED = "not changed"  # it was drained; still to be returned to service
    DONE = "done"
    REVERTED = "reverted"
    PASSED = "passed over"
    NOT_REACHED = "not reached"  # it was drained and not changed, and is in service
    REFUSED = "refused"
    STUCK = "stuck"


class Event(str, Enum):
    """What a run writes down about a host."""

    PREPARED = "prepared"
    REFUSED = "refused"
    DRAIN_BEGAN = "drain began"
    COMMAND_BEGAN = "drain command began"
    COMMAND_MISSING = "drain command did not start"
    DRAINED = "drained"
    NOT_DRAINED = "not drained"
    NOT_REACHED = "not reached"
    CHANGE_BEGAN = "change began"
    CHANGED = "changed"
    CHANGE_FAILED = "change failed"
    RESTORE_BEGAN = "roll-back began"
    RESTORED = "rolled back"
    RESTORE_FAILED = "roll-back failed"
    RETURNED = "returned"
    NODE_RETURNED = "node returned"  # upgrade_ready_command is still to be run


OUT_OF_SERVICE = frozenset(
    {State.DRAINING, State.DRAINED, State.CHANGING, State.CHANGED, State.FAILED, State.RESTORING,
     State.RESTORED, State.LEAVING, State.UNCHANGED, State.STUCK}
)  # fmt: skip
MOVES: dict[tuple[State, Event], State] = {
    (State.WAITING, Event.PREPARED): State.READY,
    (State.WAITING, Event.REFUSED): State.REFUSED,
    (State.READY, Event.DRAIN_BEGAN): State.DRAINING,
    (State.READY, Event.REFUSED): State.REFUSED,
    (State.DRAINING, Event.COMMAND_BEGAN): State.DRAINING,
    (State.DRAINING, Event.COMMAND_MISSING): State.DRAINING,
    (State.DRAINING, Event.DRAINED): State.DRAINED,
    (State.DRAINING, Event.NOT_DRAINED): State.LEAVING,
    (State.DRAINED, Event.CHANGE_BEGAN): State.CHANGING,
    (State.DRAINED, Event.NOT_REACHED): State.UNCHANGED,
    (State.CHANGING, Event.NOT_REACHED): State.UNCHANGED,
    (State.CHANGING, Event.CHANGED): State.CHANGED,
    (State.CHANGING, Event.CHANGE_FAILED): State.FAILED,
    (State.FAILED, Event.RESTORE_BEGAN): State.RESTORING,
    (State.RESTORING, Event.RESTORED): State.RESTORED,
    (State.RESTORING, Event.RESTORE_FAILED): State.STUCK,
    (State.CHANGED, Event.NODE_RETURNED): State.CHANGED,
    (State.RESTORED, Event.NODE_RETURNED): State.RESTORED,
    (State.LEAVING, Event.NODE_RETURNED): State.LEAVING,
    (State.UNCHANGED, Event.NODE_RETURNED): State.UNCHANGED,
    (State.CHANGED, Event.RETURNED): State.DONE,
    (State.RESTORED, Event.RETURNED): State.REVERTED,
    (State.LEAVING, Event.RETURNED): State.PASSED,
    (State.UNCHANGED, Event.RETURNED): State.NOT_REACHED,
}
UNTOUCHED = frozenset({State.PASSED, State.NOT_REACHED, State.REFUSED})  # as before, at the end
TO_RETURN = frozenset({State.LEAVING, State.UNCHANGED})  # as before, once they are in service
BAD = frozenset({State.REVERTED, State.STUCK})  # in the failure budget
ENDED = frozenset({State.DONE, *BAD, *UNTOUCHED})


class WrongEvent(ValueError):
    """An event that cannot follow: the record is damaged, or not of this version."""


def after(state: State, event: Event) -> State:
    """The state after an event. Raises WrongEvent."""
    try:
        return MOVES[state, event]
    except KeyError:
        raise WrongEvent(f"{event.value!r} cannot follow {state.value!r}") from None
