"""Events on the node of a host, for `kubectl describe node` and `kubectl get events`. Pure.

Everyone who may read the namespace `default` can read them, so they contain no reason of a failure:
that may quote command lines, pods of other namespaces or output of commands.
"""

from __future__ import annotations

import re
import time
from typing import Any

from gpufleet.drain.nodes import EVENTS_NAMESPACE
from gpufleet.upgrade.host_state import FAILING, Phase

CODE = re.compile(r"GF\d{3}\b", re.ASCII)  # of a finding, before its message
REASONS = {
    Phase.DRAINING: "GpufleetDrain",
    Phase.CHANGING: "GpufleetChange",
    Phase.RESTORING: "GpufleetRollBack",
    Phase.DONE: "GpufleetChanged",
    Phase.REVERTED: "GpufleetRolledBack",
    Phase.PASSED: "GpufleetPassed",
    Phase.STUCK: "GpufleetStuck",
}


def event_of(node: str, run: str, phase: Phase, why: str, now: float) -> dict[str, Any] | None:
    """The Event object, or None if the phase does not concern the node. `why`: only its finding
    code is shown. `now`: seconds since 1970."""
    if phase not in REASONS:
        return None
    moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now))
    code = CODE.match(why)
    shown = f" ({code.group()})" if code else ""
    more = "; `gpufleet upgrade status` has the reason" if why else ""
    return {
        "metadata": {"generateName": f"{node}.", "namespace": EVENTS_NAMESPACE},
        # the kubelet also uses the node's name as uid
        "involvedObject": {"apiVersion": "v1", "kind": "Node", "name": node, "uid": node},
        "reason": REASONS[phase],
        "message": f"run {run} of gpufleet upgrade: {phase.value}{shown}{more}",
        "type": "Warning" if phase in FAILING | {Phase.PASSED} else "Normal",
        "source": {"component": "gpufleet"},
        "firstTimestamp": moment,
        "lastTimestamp": moment,
        "count": 1,
    }
