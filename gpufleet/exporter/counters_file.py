"""The list of counters that dcgm-exporter reads. Pure."""

from __future__ import annotations

from collections.abc import Collection

from gpufleet.exporter.counters import CounterCatalog


def counters_csv(
    catalog: CounterCatalog, version: str, generations: Collection[str] = ()
) -> str | None:
    """The list for an exporter of `version` as its CSV: `field, type, help` lines and # titles.

    `generations`: of the GPUs that it serves, as gpus.yaml names them; empty where they are not
    known. None where the catalog has no list for that version: the exporter's own is the right one.
    """
    if not catalog.serves(version):
        return None
    lines = ["# Written by gpufleet: field, type, help."]
    for topic, fields in catalog.of(version, generations):
        lines += ["", f"# {topic.topic}"]
        lines += [f"{entry.field}, {entry.type}, {entry.help}" for entry in fields]
    return "\n".join(lines) + "\n"


def collected(
    catalog: CounterCatalog, version: str, generations: Collection[str] = ()
) -> frozenset[str]:
    """The fields that an exporter of `version` collects, with our list where there is one.

    The exporter's own list of a version from `catalog.until` on has other names: it gives none.
    """
    if catalog.serves(version):
        found = catalog.of(version, generations)
        return frozenset(entry.field for _, fields in found for entry in fields)
    before = not catalog.is_after(version)
    return frozenset(catalog.builtin.fields) if before else frozenset()


def fields_of(csv: str) -> frozenset[str]:
    """The fields that a list names."""
    lines = [line for line in csv.splitlines() if line.strip() and not line.startswith("#")]
    return frozenset(line.split(",", 1)[0].strip() for line in lines)
