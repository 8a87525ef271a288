"""A fleet as one HTML page, without scripts or external addresses. Every text is escaped. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone

from gpufleet import __version__
from gpufleet.core.names import count_noun, fold_names, same_findings
from gpufleet.core.render import render_page
from gpufleet.core.visible import one_line
from gpufleet.status.groups import by_property, group_equal_rows, whole_fleet
from gpufleet.status.models import FLAGS, MEANINGS, FleetStatus
from gpufleet.status.text import BAD_FLAGS, summary_lines

BARS = 12  # per chart; the last bar sums up the rest


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar of a chart."""

    label: str
    number: int
    width: float  # in percent of the widest bar


def as_html(fleet: FleetStatus, now: int) -> str:
    """The page. `now`: seconds since 1970."""
    notes = ((row.name, note.finding) for row in fleet.all_rows for note in row.notes)
    clusters = {row.name for row in fleet.clusters}
    found = {flag for row in fleet.all_rows for flag in row.flags}
    charts = {
        "GPUs by model": _bars(_gpus(fleet)),
        "Hosts by driver": _bars(_sizes(fleet, "driver")),
        "Hosts by distribution": _bars(_sizes(fleet, "os")),
        "Hosts by flag": _bars(whole_fleet(fleet).flags.items()),
    }
    bad_first = sorted(
        group_equal_rows(fleet.rows), key=lambda rows: set(BAD_FLAGS).isdisjoint(rows[0].flags)
    )
    groups = [(_names(row.name for row in rows), len(rows), rows[0]) for rows in bad_first]
    findings = [
        (finding, _names(names), _counted(names, clusters))
        for finding, names in same_findings(notes)
    ]
    return render_page(
        "status/page.html",
        version=__version__,
        inventory=one_line(fleet.inventory),
        time=datetime.fromtimestamp(now, timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        lines=list(summary_lines(fleet)),
        charts=charts,
        groups=groups,
        clusters=fleet.clusters,
        findings=findings,
        meanings={flag: MEANINGS[flag] for flag in FLAGS if flag in found},
        bad=BAD_FLAGS,
        one_line=one_line,
    )


def _counted(names: Sequence[str], clusters: Collection[str]) -> str:
    """Count hosts and clusters, such as "2 hosts, 1 cluster"."""
    of_clusters = sum(name in clusters for name in names)
    counts = {"host": len(names) - of_clusters, "cluster": of_clusters}
    return ", ".join(count_noun(number, word) for word, number in counts.items() if number)


def _names(names: Iterable[str]) -> str:
    return ", ".join(fold_names(names))


def _gpus(fleet: FleetStatus) -> list[tuple[str, int]]:
    counts: Counter[str] = Counter()
    for row in fleet.rows:
        counts.update({} if row.is_second_name else dict(row.models))
    return counts.most_common()


def _sizes(fleet: FleetStatus, name: str) -> list[tuple[str, int]]:
    return [(group.value or "none", len(group.rows)) for group in by_property(fleet, name)]


def _bars(found: Iterable[tuple[str, int]]) -> list[Bar]:
    """The largest numbers as bars, and the sum of the rest as one bar."""
    numbers = list(found)
    if len(numbers) > BARS:
        others = sum(number for _, number in numbers[BARS - 1 :])
        numbers = [*numbers[: BARS - 1], ("others", others)]
    largest = max((number for _, number in numbers), default=1)
    return [
        Bar(one_line(label), number, round(100 * number / largest, 1)) for label, number in numbers
    ]
