"""The text form of a run's report: the tables, the findings and a summary line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import compress

from rich.console import Console
from rich.table import Table
from rich.text import Text

from gpufleet.core.console import print_finding
from gpufleet.core.findings import Severity
from gpufleet.core.live import is_quiet
from gpufleet.core.names import count_noun, group_by_thing, name_hosts, same_findings
from gpufleet.core.node_roles import NODE_ROLES
from gpufleet.core.own_entries import own_entries
from gpufleet.core.progress import step_title
from gpufleet.core.visible import each_line, one_line
from gpufleet.run.impact import impact_lines
from gpufleet.run.report import HostReport


def show_report(console: Console, hosts: list[HostReport], *, dry: bool = False) -> None:
    """Print the tables, steps, errors, findings with the hosts that share them, a summary line.

    Names of hosts, versions and messages are text, never markup.
    """
    if dry and (impact := impact_lines(hosts)):
        console.print(Text("Impact", style="bold"), highlight=False)
        for line in impact:
            console.print(Text(f"  {line}"), highlight=False)
    nodes = [host for host in hosts if host.kind == "node"]
    clusters = [host for host in hosts if host.kind == "cluster"]
    if nodes or not clusters:
        console.print(_nodes(nodes, dry=dry))
    if clusters:
        console.print(_clusters(clusters, dry=dry))
    if dry:
        _show_steps(console, "would", [(host.name, host.steps) for host in hosts])
    elif is_quiet():  # otherwise operations are shown while they run
        done = [(host.name, [step_title(name) for name in host.operations]) for host in hosts]
        _show_steps(console, "changed", done)
    found = (
        (host.name, finding)
        for host in hosts
        for finding in host.findings
        if finding.severity is not Severity.INFO or not _hides_infos(host, dry=dry)
    )
    for host in hosts:
        for error in host.errors:  # first: findings may be from before the failed step
            word = host.status if host.status == "not reached" else "failed"
            _say(console, word, "bold red", host.name, error)
    for finding, names in same_findings(found):
        print_finding(console, finding, names)
    for finding in own_entries() if dry and not is_quiet() else ():
        print_finding(console, finding)
    console.print(_summary(nodes, clusters, dry=dry), highlight=False, markup=False)


def _hides_infos(host: HostReport, *, dry: bool) -> bool:
    """True if each run would repeat the infos: `plan` and `doctor` show them."""
    return is_quiet() or (not dry and host.status == "converged")


def _show_steps(console: Console, word: str, steps: Sequence[tuple[str, list[str]]]) -> None:
    """Print a line for each step, with its hosts. The order fits every host, except for repeated
    steps."""
    names = group_by_thing((host, step) for host, own in steps for step in own)
    order: list[str] = []
    for _, own in steps:
        place = 0
        for step in own:
            if step not in order:
                order.insert(place, step)
            place = order.index(step) + 1
    for step in order:
        _say(console, word, "green", name_hosts(names[step]), step)


def _say(console: Console, word: str, style: str, host: str, sentence: str) -> None:
    text = Text.assemble((word, style), f" {one_line(host)}: {each_line(sentence)}")
    console.print(text, highlight=False)


def _nodes(hosts: list[HostReport], *, dry: bool) -> Table:
    moved = [
        name
        for name, shown in NODE_ROLES.items()
        if shown == "always" or any(host.roles.get(name) for host in hosts)
    ]
    columns = ("host", *moved, "runtimes", "changes", "still needed", "time")
    cells: dict[str, list[Text]] = {}
    for host in hosts:
        runtimes = ", ".join(f"{name} {state}".strip() for name, state in host.runtimes.items())
        cells[host.name] = [
            *(_movement(host.roles.get(name, {}), host, dry=dry) for name in moved),
            _text(runtimes),
            *_changes_and_needs(host, dry=dry),
        ]
    rows = [
        [Text(name_hosts([host.name for host in alike])), *cells[alike[-1].name], _time(alike)]
        for alike in _alike(hosts, cells)
    ]
    return _table("Plan" if dry else "GPU nodes", columns, rows)


def _alike(
    hosts: list[HostReport], cells: Mapping[str, Sequence[Text]]
) -> Iterable[list[HostReport]]:
    """The hosts that share a line: hosts with the same cells. A host that failed or was not reached
    has its own line. A line has the place of its first host."""
    lines: dict[tuple[str, ...], list[HostReport]] = {}
    for host in hosts:
        own = () if host.status in ("converged", "planned", "changed") else (host.name,)
        lines.setdefault((*own, *(cell.plain for cell in cells[host.name])), []).append(host)
    return lines.values()


def _clusters(hosts: list[HostReport], *, dry: bool) -> Table:
    rows = []
    for host in hosts:
        releases = [
            _text(f"{name} ") + _movement(moved, host, dry=dry)
            for name, moved in host.releases.items()
        ]
        changes = _changes_and_needs(host, dry=dry)
        rows.append([_text(host.name), Text("\n").join(releases), *changes, _time([host])])
    title = "Plan of the clusters" if dry else "Clusters"
    return _table(title, ("cluster", "releases", "changes", "still needed", "time"), rows)


def _table(title: str, columns: Sequence[str], rows: list[list[Text]]) -> Table:
    """A table in the style of kubectl, without lines and without columns that are always empty."""
    table = Table(title=title, title_justify="left", box=None, padding=(0, 2, 0, 0), pad_edge=False)
    shown = [any(row[place].plain for row in rows) for place in range(len(columns))]
    for column in compress(columns, shown):
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*compress(row, shown))
    return table


def _changes_and_needs(host: HostReport, *, dry: bool) -> list[Text]:
    if host.status in ("failed", "not reached"):
        changes = Text(_word(host, dry=dry), "bold red")
    elif host.left:
        changes = Text(f"{host.changed}, {len(host.left)} not done")
    elif host.status == "converged":
        changes = Text("no changes")
    else:
        changes = Text(f"{host.changed} planned" if host.status == "planned" else str(host.changed))
    return [changes, _text("; ".join(host.needs))]


def _time(hosts: Sequence[HostReport]) -> Text:
    """The time of the slowest host."""
    return Text(f"{max(host.seconds for host in hosts):.1f} s")


def _text(value: str) -> Text:
    """A text from a host or cluster, as a table cell."""
    return Text(one_line(value))


def _movement(change: dict[str, str | None], host: HostReport, *, dry: bool) -> Text:
    """`before -> after`; a version that only the repository knows is not `none`."""
    before, after = change.get("before"), change.get("after")
    if before == after:
        return _text(after or "-")
    absent = "newest" if dry and not host.leaves else "none"
    return _text(f"{before or 'none'} -> {after or absent}")


def _word(host: HostReport, *, dry: bool) -> str:
    """The word for a status. A host that a blocker stopped before any change did not fail."""
    stopped = any(finding.blocks for finding in host.findings)
    untouched = dry or (stopped and not host.changed and not host.errors)
    return "blocked" if host.status == "failed" and untouched else host.status


def _summary(nodes: list[HostReport], clusters: list[HostReport], *, dry: bool) -> str:
    hosts = [*nodes, *clusters]
    count = Counter(host.status for host in hosts)
    things = [count_noun(len(nodes), "host")] if nodes or not clusters else []
    things += [count_noun(len(clusters), "cluster")] if clusters else []
    verb = "to change" if dry else "changed"
    moved, same = count["changed"] + count["planned"], count["converged"]
    line = f"{', '.join(things)}: {moved} {verb}, {same} with no changes, "
    blocked = sum(_word(host, dry=dry) == "blocked" for host in hosts)
    counts = {"blocked": blocked, "failed": count["failed"] - blocked}
    said = [f"{number} {word}" for word, number in counts.items() if number]
    line += ", ".join(said) or f"0 {'blocked' if dry else 'failed'}"
    begun = sum(host.status == "failed" and host.changed > 0 for host in hosts)
    line += f" ({begun} after changes)" if begun else ""
    line += f", {count['not reached']} not reached" if count["not reached"] else ""
    accepted = sum(len(host.accepted) for host in hosts)
    return f"{line}; {count_noun(accepted, 'accepted finding')}" if accepted else line
