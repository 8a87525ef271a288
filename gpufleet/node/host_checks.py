"""Findings about a host that do not depend on a role. Pure."""

from __future__ import annotations

from datetime import datetime, timezone

from gpufleet.core.findings import Finding
from gpufleet.facts.files import BACKUPS, MIN_FREE, RECORD_PATH, full_paths
from gpufleet.facts.model import NodeFacts
from gpufleet.host import findings as access
from gpufleet.host.upgrade_state import STATE_FILE, parse_state
from gpufleet.node import findings
from gpufleet.node.catalog import Catalog
from gpufleet.packages import findings as package_findings
from gpufleet.packages.repository import revoked_keys
from gpufleet.role.listing import node_roles
from gpufleet.role.place import Place

CLOCK_TOLERANCE = 300  # seconds; larger differences break signatures and TLS
CARRIED_OUT_WITH = ("apt", "dnf", "yum")
MB = 1_000_000


def full_disks(facts: NodeFacts) -> list[Finding]:
    """A blocker for each full path. A driver needs more space: see its role."""
    return [
        package_findings.DISK_SPACE(
            path=path, free=facts.free_bytes[path] // MB, needed=MIN_FREE // MB
        )
        for path in full_paths(facts)
    ]


def inspect_host(facts: NodeFacts, catalog: Catalog, now: int) -> list[Finding]:
    """Findings that do not depend on the driver. `now`: seconds since 1970 on this machine."""
    found: list[Finding] = []
    manager = facts.package_manager or "none at all"
    if manager not in CARRIED_OUT_WITH:
        found.append(package_findings.UNSUPPORTED_MANAGER(manager=manager))
    skew = facts.clock - now
    if abs(skew) > CLOCK_TOLERANCE:
        direction = "ahead of" if skew > 0 else "behind"
        found.append(findings.CLOCK_SKEW(seconds=abs(skew), direction=direction))
    if facts.lock_holder:
        found.append(package_findings.LOCK_HELD(holder=facts.lock_holder))
    return [*found, *revoked_keys(catalog.cuda, facts)]


def named_twice(place: Place) -> list[Finding]:
    """A blocker for each name of a machine except the first, because settings may contradict."""
    if place.same_machine is None:
        return []
    this, other = place.same_machine
    return [access.SAME_MACHINE(this=this, other=other, done=access.NOTHING)]


def check_record(facts: NodeFacts) -> list[Finding]:
    """A blocker if the host's record is invalid."""
    file = facts.files.get(RECORD_PATH)
    trouble = facts.provenance.trouble(role.entry for role in node_roles())
    problem = (file.error if file else "") or trouble
    if not problem:
        return []
    return [access.RECORD_UNUSABLE(path=RECORD_PATH, problem=problem, folder=BACKUPS)]


def unfinished_upgrade(facts: NodeFacts) -> list[Finding]:
    """A warning if the host is in an upgrade that has not ended, by the run's state file on it."""
    try:
        state = parse_state(facts.texts.get(STATE_FILE, ""))
    except ValueError:
        what = f"{STATE_FILE} has no valid state of a run"
        return [findings.UPGRADE_UNFINISHED(what=what)]
    if state is None or (state.ended and not state.out_of_service):
        return []
    since = datetime.fromtimestamp(state.since, timezone.utc).strftime("%Y-%m-%d %H:%M UTC")
    what = f"run {state.run}, {state.kind} to {state.target}: {state.phase.value} since {since}"
    return [findings.UPGRADE_UNFINISHED(what=f"{what}; {state.why}" if state.why else what)]
