"""A fleet as text for a terminal of any width. Texts from hosts are never read as markup. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from gpufleet.core.console import print_finding
from gpufleet.core.findings import Finding
from gpufleet.core.names import count_noun, fold_names, same_findings
from gpufleet.core.visible import one_line
from gpufleet.status.groups import Group, by_property, group_equal_rows, whole_fleet
from gpufleet.status.models import FLAGS, ClusterRow, Flag, FleetStatus, Row

BAD_FLAGS = ("unreachable", "no-sudo", "unreadable", "blocked", "gpu-fault")  # flags in red
WIDE = 140  # columns from which each host or group has one line
EMPTY_CELL = "-"
PAIRS = (("HOSTS", "FLAGS"), ("GPUS", "OS"), ("DRIVER", "KERNEL"), ("TOOLKIT", "RUNTIME"))


def show_status(console: Console, fleet: FleetStatus) -> None:
    """Print the table, findings with their hosts, and a summary."""
    if fleet.rows or not fleet.clusters:
        console.print(_table(group_equal_rows(fleet.rows), wide=console.width >= WIDE))
    _explain(console, fleet)


def show_groups(console: Console, fleet: FleetStatus, by: str) -> None:
    """Print the table with a line for each value of a property or data key, then findings and a
    summary."""
    console.print(_grouped_table(by_property(fleet, by), by))
    _explain(console, fleet)


def _explain(console: Console, fleet: FleetStatus) -> None:
    console.print()
    if fleet.clusters:
        console.print(_cluster_table(fleet.clusters))
        console.print()
    notes = [(row.name, note.finding) for row in fleet.all_rows for note in row.notes]
    show_findings(console, notes)
    for line in summary_lines(fleet):
        console.print(Text(line), highlight=False)


def show_findings(console: Console, found: Iterable[tuple[str, Finding]]) -> None:
    """Print each finding once, then an empty line."""
    findings = same_findings(found)
    for finding, names in findings:
        print_finding(console, finding, names)
    if findings:
        console.print()


def summary_lines(fleet: FleetStatus) -> Iterator[str]:
    """The numbers of hosts and GPUs, and the number of hosts with each flag."""
    accepted = sum(len(row.accepted) for row in fleet.rows)
    end = f"; {count_noun(accepted, 'accepted finding')}" if accepted else ""
    flags = _flag_counts(fleet.rows)
    if fleet.rows or not fleet.clusters:
        yield f"{count_noun(len(fleet.rows), 'host')}{_gpus(fleet)}: {flags}{end}"
    if fleet.clusters:
        yield f"{count_noun(len(fleet.clusters), 'cluster')}: {_flag_counts(fleet.clusters)}"


def _flag_counts(rows: Sequence[Row | ClusterRow]) -> str:
    found = Counter(flag for row in rows for flag in row.flags)
    counts = [f"{found[flag]} {flag}" for flag in FLAGS if found[flag]]
    clean = sum(not row.flags for row in rows)
    return ", ".join([*counts, f"{clean} without a flag"])


def _gpus(fleet: FleetStatus) -> str:
    """The number of GPUs. If some hosts did not answer, also the number of hosts that did."""
    answered = sum(row.reached for row in fleet.rows)
    if fleet.rows and not answered:
        return ""
    of = "" if answered == len(fleet.rows) else f" on the {answered} that answered"
    return f", {count_noun(whole_fleet(fleet).gpus, 'GPU')}{of}"


def topic_table(topics: Iterable[tuple[str, Sequence[str]]], empty: str) -> Table:
    """A table with the lines of each topic. `empty`: the text of a topic without lines."""
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0), pad_edge=False)
    for topic, lines in topics:
        text = Text("\n".join(map(one_line, lines)) or empty)
        table.add_row(Text(f"  {topic}", style="dim"), text)
    return table


def _table(groups: Sequence[tuple[Row, ...]], *, wide: bool) -> Table:
    headers: tuple[str, ...] = tuple("\n".join(pair) for pair in PAIRS)
    if wide:
        headers = ("HOSTS", "GPUS", "DRIVER", "TOOLKIT", "RUNTIME", "KERNEL", "OS", "FLAGS")
    table = _plain(headers)
    for rows in groups:
        row = rows[0]
        names = ", ".join(fold_names(row.name for row in rows))
        hosts = Text(names if len(rows) == 1 else f"{count_noun(len(rows), 'host')}: {names}")
        flags = Text(", ").join(Text(flag, _style(flag)) for flag in row.flags) or Text(EMPTY_CELL)
        gpus, driver, toolkit, runtime, kernel, system = map(_cell, row.texts)
        if wide:
            table.add_row(hosts, gpus, driver, toolkit, runtime, kernel, system, flags)
            continue
        pairs = ((hosts, flags), (gpus, system), (driver, kernel), (toolkit, runtime))
        table.add_row(*(Text("\n").join(pair) for pair in pairs))
    return table


def _cluster_table(rows: Iterable[ClusterRow]) -> Table:
    table = _plain(("CLUSTER", "RELEASES", "FLAGS"))
    for row in rows:
        flags = Text(", ").join(Text(flag, _style(flag)) for flag in row.flags) or Text(EMPTY_CELL)
        releases = Text("\n").join(map(_cell, row.releases_text.splitlines())) or Text(EMPTY_CELL)
        table.add_row(_cell(row.name), releases, flags)
    return table


def _grouped_table(groups: Sequence[Group], by: str) -> Table:
    table = _plain((one_line(by).upper(), "HOSTS", "GPUS", "FLAGS", "NAMES"))
    for group in groups:
        flags = Text("\n").join(
            Text(f"{number} {flag}", _style(flag)) for flag, number in group.flags.items()
        )
        names = Text(", ".join(fold_names(group.names)))
        numbers = (Text(str(len(group.rows))), Text(str(group.gpus)))
        table.add_row(_cell(group.value), *numbers, flags or Text(EMPTY_CELL), names)
    return table


def _plain(headers: Sequence[str]) -> Table:
    """A table without lines, in the style of kubectl."""
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    for header in headers:
        table.add_column(header, overflow="fold")
    return table


def _cell(text: str) -> Text:
    return Text(one_line(text) or EMPTY_CELL)


def _style(flag: Flag) -> str:
    return "bold red" if flag in BAD_FLAGS else "yellow"
