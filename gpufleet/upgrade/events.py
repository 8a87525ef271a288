"""Events on the node of a host, for `kubectl describe node` and `kubectl get events`. Pure.

Whoever reads the namespace `default` reads them: why something failed is not in them, as it may
quote command lines of processes, pods of other namespaces and what commands print.
"""

from __future__ import annotations

import re
import time
from typing import Any

from gpufleet.upgrade.states import Event

NAMESPACE = "default"  # of events about nodes: they have none
CODE = re.compile(r"GF\d{3}\b", re.ASCII)  # of a finding, before its message
REASONS = {  # event of a run -> reason, and whether it is a problem
    Event.DRAIN_BEGAN: ("GpufleetDrain", False),
    Event.NOT_DRAINED: ("GpufleetNotDrained", True),
    Event.NOT_REACHED: ("GpufleetNotReached", True),
    Event.CHANGE_BEGAN: ("GpufleetChange", False),
    Event.CHANGED: ("GpufleetChanged", False),
    Event.CHANGE_FAILED: ("GpufleetChangeFailed", True),
    Event.RESTORE_BEGAN: ("GpufleetRollBack", False),
    Event.RESTORED: ("GpufleetRolledBack", False),
    Event.RESTORE_FAILED: ("GpufleetRollBackFailed", True),
    Event.RETURNED: ("GpufleetReturned", False),
}


def event_of(node: str, run: str, event: Event, why: str, now: float) -> dict[str, Any] | None:
    """The object of the API; None for an event that does not concern the node. `why`: what the
    record has; of it the finding's code alone is shown. `now`: seconds since 1970."""
    if event not in REASONS:
        return None
    reason, bad = REASONS[event]
    moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now))
    code = CODE.match(why)
    shown = f" ({code.group()})" if code else ""
    more = f"; `gpufleet upgrade status --run {run}` has the reason" if why else ""
    text = f"run {run} of gpufleet upgrade: {event.value}{shown}{more}"
    return {
        "metadata": {"generateName": f"{node}.", "namespace": NAMESPACE},
        # the kubelet, too, names nodes by their names where a uid is asked for
        "involvedObject": {"apiVersion": "v1", "kind": "Node", "name": node, "uid": node},
        "reason": reason,
        "message": text,
        "type": "Warning" if bad else "Normal",
        "source": {"component": "gpufleet"},
        "firstTimestamp": moment,
        "lastTimestamp": moment,
        "count": 1,
    }
