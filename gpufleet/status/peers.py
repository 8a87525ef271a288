"""Hosts that differ from most hosts with the same GPUs. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence

from gpufleet.status import findings
from gpufleet.status.models import Note, Row

Key = Callable[[Row], str]
OF_MODEL: dict[str, Key] = {
    "The number of GPUs": lambda row: str(row.gpus),
    "The driver": lambda row: row.driver or "none",
    "The distribution": lambda row: row.os,
}
OF_SYSTEM: dict[str, Key] = {  # among hosts with the same distribution, too
    "The kernel": lambda row: row.kernel,
    "The container toolkit": lambda row: row.toolkit or "none",
    "The container runtime": lambda row: row.runtime_text or "none",
}


def compared(rows: Sequence[Row]) -> tuple[Row, ...]:
    """The same rows, with a note where a host differs from more than half of its peers."""
    found: dict[str, list[Note]] = defaultdict(list)
    for members in _alike(rows, lambda row: row.model):
        for name, note in _outliers(members, OF_MODEL):
            found[name].append(note)
        for same in _alike(members, lambda row: row.os):
            for name, note in _outliers(same, OF_SYSTEM):
                found[name].append(note)
    return tuple(row.with_notes(tuple(found[row.name])) for row in rows)


def _alike(rows: Sequence[Row], key: Key) -> list[list[Row]]:
    groups: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        if row.model:  # a host that was not reached has none
            groups[key(row)].append(row)
    return list(groups.values())


def _outliers(rows: Sequence[Row], keys: dict[str, Key]) -> Iterator[tuple[str, Note]]:
    for what, key in keys.items():
        (usual, share), *_ = Counter(map(key, rows)).most_common(1)
        if share * 2 <= len(rows):  # of two hosts nobody knows which one is the exception
            continue
        for row in rows:
            if key(row) != usual:
                finding = findings.OUTLIER(
                    what=what, found=key(row), usual=usual, share=share, total=len(rows),
                    model=row.model,
                )  # fmt: skip
                yield row.name, Note("outlier", finding)
