"""Derives the row of a host from its facts, its settings and the catalog. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import date, datetime, timezone

from gpufleet.combinations.installed import installed_components
from gpufleet.combinations.judge import judge_combinations
from gpufleet.combinations.models import NO_COMPONENTS, load_combinations
from gpufleet.core.findings import Finding, Severity
from gpufleet.core.names import count_noun
from gpufleet.driver.catalog import devices_of
from gpufleet.driver.findings.host import DRIVER_KEPT, REBOOT_NEEDED
from gpufleet.driver.health import assess_gpu_health
from gpufleet.driver.role import ROLE as DRIVER
from gpufleet.facts.kernels import newer_kernel
from gpufleet.facts.model import NodeFacts
from gpufleet.host.findings import (
    FACTS_UNREADABLE,
    NO_SHELL,
    NOT_ROOT,
    PRIVILEGES_REFUSED,
    SU_PASSWORD,
    UNEXPECTED,
)
from gpufleet.node.catalog import Catalog
from gpufleet.node.host_checks import check_record, unfinished_upgrade
from gpufleet.node.plan import NodePlan, plan_node, plan_steps
from gpufleet.status import findings
from gpufleet.status.gres import gres_of_boards, layout_of_boards
from gpufleet.status.groups import group_rows
from gpufleet.status.models import ClusterRow, Flag, FleetStatus, Note, Row, SeenHost
from gpufleet.status.support import (
    about_driver,
    about_fit,
    about_runtimes,
    about_system,
    about_toolkit,
)
from gpufleet.toolkit.findings.choice import TOOLKIT_KEPT
from gpufleet.toolkit.role import installed_toolkit

KEPT_CODES = (DRIVER_KEPT.code, TOOLKIT_KEPT.code)  # the version differs from the selected one
NO_ROOT = {kind.code for kind in (PRIVILEGES_REFUSED, SU_PASSWORD, NO_SHELL)}
NO_ANSWER_CODES = {kind.code for kind in (FACTS_UNREADABLE, UNEXPECTED)}
MAX_SHOWN_STEPS = 3  # steps that a sentence names
Key = Callable[[Row], str]
OF_MODEL: dict[str, Key] = {
    "The number of GPUs": lambda row: str(row.gpus),
    "The driver": lambda row: row.driver or "none",
    "The distribution": lambda row: row.os,
}
OF_SYSTEM: dict[str, Key] = {  # compared only within a distribution
    "The kernel": lambda row: row.kernel,
    "The container toolkit": lambda row: row.toolkit or "none",
    "The container runtime": lambda row: row.runtime_text or "none",
}


def fleet_of(
    inventory: str, hosts: Iterable[SeenHost], clusters: Sequence[str], catalog: Catalog, now: int
) -> FleetStatus:
    """All rows, each compared with similar rows. `now`: seconds since 1970 on this machine."""
    known = _named_twice(hosts)
    rows = compare_peers([_readable(host, catalog, now) for host in known])
    today = _day(now)
    shown = (
        replace(row.accepting(host.accepted, today), data=host.data)
        for host, row in zip(known, rows, strict=True)
    )
    return FleetStatus(inventory, tuple(shown), tuple(map(ClusterRow, clusters)))


def _named_twice(hosts: Iterable[SeenHost]) -> list[SeenHost]:
    """The hosts. The place of a host names an earlier host with the same running system."""
    firsts: dict[tuple[str, str], str] = {}
    found = []
    for host in hosts:
        facts = host.facts
        if facts and facts.machine_id and facts.boot_id:
            first = firsts.setdefault((facts.machine_id, facts.boot_id), host.name)
            if first != host.name:
                place = replace(host.place, same_machine=(host.name, first))
                host = replace(host, place=place)
        found.append(host)
    return found


def _day(now: int) -> date:
    return datetime.fromtimestamp(now, timezone.utc).date()


def _readable(host: SeenHost, catalog: Catalog, now: int) -> Row:
    """The row of a host. An error about one host does not affect the rows of other hosts."""
    try:
        return row_of(host, catalog, now)
    except Exception as error:  # noqa: BLE001 - the boundary of one host
        return unreadable_row(host, error)


def unreadable_row(host: SeenHost, error: Exception) -> Row:
    """The row of a host with unusable facts. The error's text is left out: it may quote facts."""
    problem = FACTS_UNREADABLE(
        host=host.name,
        doing="while it was compared with its settings and the catalog",
        problem=f"its facts raise {type(error).__name__}",
    )
    notes = (Note("unreadable", problem),)
    return Row(host.name, host.groups, reached=False, notes=notes)


def _why(problem: Finding) -> Flag:
    """The flag of a host without facts."""
    if problem.code in NO_ROOT:
        return "no-sudo"
    return "unreadable" if problem.code in NO_ANSWER_CODES else "unreachable"


def plan_of_host(host: SeenHost, catalog: Catalog, now: int) -> NodePlan | None:
    """The plan of a host, or None if its facts or its settings are not usable."""
    facts, settings = host.facts, host.settings
    if settings is None or facts is None or not facts.privileged or check_record(facts):
        return None
    return plan_node(settings, facts, catalog, now, host.logins, host.place)


def row_of(host: SeenHost, catalog: Catalog, now: int) -> Row:
    """The row of one host, not yet compared with other hosts."""
    facts = host.facts
    if facts is None:
        why = (Note(_why(host.problem), host.problem),) if host.problem else ()
        return Row(host.name, host.groups, reached=False, notes=why)
    plan = plan_of_host(host, catalog, now)
    today = _day(now)
    installed = facts.module_on_disk.version if facts.module_on_disk else facts.library
    running = [each for each in facts.runtimes.values() if each.running]
    counts = Counter(gpu.device for gpu in facts.gpus)
    row = Row(
        name=host.name,
        groups=host.groups,
        models=tuple((model.name, counts[model.id]) for model in devices_of(catalog, list(counts))),
        layout=layout_of_boards(facts.listed),
        gres=gres_of_boards(facts.listed),
        driver=facts.loaded_driver or installed or _packaged(plan),
        loaded=facts.loaded_driver is not None,
        toolkit=installed_toolkit(facts, catalog.toolkit.packages.names),
        runtimes=tuple((runtime.name, runtime.version) for runtime in running),
        kernel=facts.kernel.release,
        os=facts.os.code,
        steps=tuple(plan_steps(plan)) if plan else (),
    )
    faults = plan.faults if plan else assess_gpu_health(facts, None, repairs=False)
    notes = (
        *_by_settings(host, facts, plan, row),
        *(Note("gpu-fault", finding) for finding in faults.all),
        *_by_facts(row, host, facts, catalog, today),
    )
    return row.with_notes(notes)


def _packaged(plan: NodePlan | None) -> str:
    """The version of the driver's packages, for a host without the driver's module."""
    known = plan.of(DRIVER) if plan else None
    return (known.before if known else None) or ""


def _by_settings(
    host: SeenHost, facts: NodeFacts, plan: NodePlan | None, row: Row
) -> Iterator[Note]:
    blockers = [each for each in host.problems if each.blocks]
    blockers += [NOT_ROOT()] if not facts.privileged else check_record(facts)
    if plan:
        blockers += plan.blockers
        kept = [each for each in plan.all_findings if each.code in KEPT_CODES]
        warned = (each for each in kept if each.severity is Severity.WARNING)
        yield from (Note("version", finding) for finding in warned)
    yield from (Note("blocked", finding) for finding in blockers)
    yield from (Note("settings", finding) for finding in host.problems if not finding.blocks)
    if row.steps:
        shown = "; ".join(row.steps[:MAX_SHOWN_STEPS])
        left = len(row.steps) - MAX_SHOWN_STEPS
        more = f"; and {count_noun(left, 'more step')}" if left > 0 else ""
        yield Note("drift", findings.DRIFT(kind="host", steps=shown + more))


def _by_facts(
    row: Row, host: SeenHost, facts: NodeFacts, catalog: Catalog, today: date
) -> Iterator[Note]:
    yield from _reboots(facts)
    if row.driver:
        yield from about_driver(row.driver, facts, host.settings, catalog, today)
        yield from about_fit(row.driver, facts, catalog)
    if row.toolkit:
        yield from about_toolkit(row.toolkit, facts, catalog)
    yield from about_runtimes(facts, today)
    yield from about_system(facts, today)
    table = load_combinations()
    known = judge_combinations(installed_components(facts, table), NO_COMPONENTS, table)
    yield from (Note("version", each) for each in known if each.severity is Severity.WARNING)
    yield from (Note("upgrade", each) for each in unfinished_upgrade(facts))
    if facts.busy or facts.lock_holder:
        holder = facts.run_lock if facts.busy else facts.lock_holder
        yield Note("busy", findings.HOST_BUSY(holder=holder or "another run of gpufleet"))


def _reboots(facts: NodeFacts) -> Iterator[Note]:
    """A driver and a kernel that are installed but not in use."""
    loaded, installed = facts.loaded_driver, facts.module_on_disk
    if loaded and installed and installed.version and installed.version != loaded:
        why = f"Driver {installed.version} is installed, {loaded} is loaded"
        yield Note("reboot", REBOOT_NEEDED(why=why))
    if newer := newer_kernel(facts):
        why = f"Kernel {newer} is installed, {facts.kernel.release} runs"
        yield Note("reboot", REBOOT_NEEDED(why=why))


def compare_peers(rows: Sequence[Row]) -> tuple[Row, ...]:
    """The rows, with a note on each host that differs from more than half of its peers."""
    found: dict[str, list[Note]] = defaultdict(list)
    read = [row for row in rows if row.model]  # empty if the host was not reached
    for members in group_rows(read, lambda row: row.model):
        for name, note in _outliers(members, OF_MODEL):
            found[name].append(note)
        for same in group_rows(members, lambda row: row.os):
            for name, note in _outliers(same, OF_SYSTEM):
                found[name].append(note)
    return tuple(row.with_notes(tuple(found[row.name])) for row in rows)


def _outliers(rows: Sequence[Row], keys: dict[str, Key]) -> Iterator[tuple[str, Note]]:
    for what, key in keys.items():
        (usual, share), *_ = Counter(map(key, rows)).most_common(1)
        if share * 2 <= len(rows):  # half or less: no value is usual
            continue
        for row in rows:
            if key(row) != usual:
                finding = findings.OUTLIER(
                    what=what, found=key(row), usual=usual, share=share, total=len(rows),
                    model=row.model,
                )  # fmt: skip
                yield row.name, Note("outlier", finding)
