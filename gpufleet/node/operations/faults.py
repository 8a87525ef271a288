"""The end of a run on a host with faults."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timezone

from pyinfra import host, state

from gpufleet.core.accepted import accepted_of, split_accepted
from gpufleet.core.findings import Finding, Severity
from gpufleet.host.boundary import fail_with
from gpufleet.host.operation import Commands, host_operation
from gpufleet.run.reporting import RunReport


@host_operation
def require_no_faults(left: Sequence[Finding]) -> Commands:
    """
    Fail after all other steps if faults are left that no step of the run repairs.

    + left: the faults, which the report has as warnings
    """
    if not left:
        host.noop("everything works")
        return
    if state.is_executing:
        part = RunReport.of(state).host(host.name)
        part.findings[:] = [each for each in part.findings if each not in left]
    yield fail_with(*as_blockers(left))


def unaccepted_faults(left: Sequence[Finding]) -> list[Finding]:
    """The faults that the inventory of this host does not accept today: these fail a run."""
    today = datetime.now(timezone.utc).date()
    accepted = split_accepted(left, accepted_of(host.data.dict()), today)[1]
    return [each for each in left if each not in accepted]


def as_blockers(found: Sequence[Finding]) -> list[Finding]:
    """The findings as blockers, which end the run."""
    return [replace(each, severity=Severity.BLOCKER) for each in found]
