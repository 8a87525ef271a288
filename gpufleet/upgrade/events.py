"""Events on the node of a host, for `kubectl describe node` and `kubectl get events`. Pure.

Whoever reads the namespace `default` reads them: why something failed is not in them, as it may
quote command lines of processes, pods of other namespaces and what commands print.
"""

from __future__ import annotations

import re
import time
from typing import Any

from gpufleet.upgrade.host_state import FAILING, Phase

NAMESPACE = "default"  # of events about nodes: they have none
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
    """The object of the API; None for a phase that does not concern the node. `why`: of it the
    finding's code alone is shown. `now`: seconds since 1970."""
    if phase not in REASONS:
        return None
    moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now))
    code = CODE.match(why)
    shown = f" ({code.group()})" if code else ""
    more = "; `gpufleet upgrade status` has the reason" if why else ""
    return {
        "metadata": {"generateName": f"{node}.", "namespace": NAMESPACE},
        # the kubelet, too, names nodes by their names where a uid is asked for
        "involvedObject": {"apiVersion": "v1", "kind": "Node", "name": node, "uid": node},
        "reason": REASONS[phase],
        "message": f"run {run} of gpufleet upgrade: {phase.value}{shown}{more}",
        "type": "Warning" if phase in FAILING | {Phase.PASSED} else "Normal",
        "source": {"component": "gpufleet"},
        "firstTimestamp": moment,
        "lastTimestamp": moment,
        "count": 1,
    }
