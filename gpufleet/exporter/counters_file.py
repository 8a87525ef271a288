"""The list of counters that dcgm-exporter reads. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from gpufleet.core.versions import version_tuple
from gpufleet.exporter.counters import CounterCatalog, CounterField, Topic


def has_list(catalog: CounterCatalog, version: str) -> bool:
    """Whether the catalog has a list for exporters of `version`."""
    return version_tuple(catalog.first) <= version_tuple(version)[:3] < version_tuple(catalog.until)


def renames(catalog: CounterCatalog, version: str) -> bool:
    """Whether exporters of `version` use other metric names."""
    return version_tuple(version)[:3] >= version_tuple(catalog.until)


def _topics(
    catalog: CounterCatalog, version: str, generations: Collection[str] = ()
) -> Iterator[tuple[Topic, tuple[CounterField, ...]]]:
    """Topics with the fields that an exporter of `version` supports.

    `generations`: of the GPUs; topics that none of them has are omitted. Empty: unknown GPUs, all
    topics.
    """
    for topic in catalog.topics:
        having = catalog.profiling if topic.profiling else topic.generations
        if having and generations and not set(generations) & set(having):
            continue
        known = tuple(field for field in topic.fields if _lists(version, field))
        if known:
            yield topic, known


def _lists(version: str, field: CounterField) -> bool:
    """Whether our list for an exporter of `version` has the field."""
    since, until = version_tuple(field.since or "0"), version_tuple(field.until or "9999")
    return since <= version_tuple(version) < until


def counters_csv(
    catalog: CounterCatalog, version: str, generations: Collection[str] = ()
) -> str | None:
    """The list for an exporter of `version` as its CSV: `field, type, help` lines and # titles.

    `generations`: of the host's GPUs, as in gpus.yaml; empty if unknown. Returns None if the
    catalog has no list for that version: the exporter's own applies.
    """
    if not has_list(catalog, version):
        return None
    lines = ["# Written by gpufleet: field, type, help."]
    for topic, fields in _topics(catalog, version, generations):
        lines += ["", f"# {topic.topic}"]
        lines += [f"{entry.field}, {entry.type}, {entry.help}" for entry in fields]
    return "\n".join(lines) + "\n"


def own_fields(catalog: CounterCatalog, version: str) -> frozenset[str]:
    """The fields that an exporter of `version` collects without a list."""
    before = not renames(catalog, version)
    return frozenset(catalog.builtin.fields) if before else frozenset()


def unknown_fields(
    catalog: CounterCatalog, version: str, fields: Collection[str]
) -> dict[str, str]:
    """Those of `fields` that an exporter of `version` does not know, each with the versions that
    do. Fields that the catalog lacks are not judged."""
    number, found = version_tuple(version), {}
    for entry in [entry for topic in catalog.topics for entry in topic.fields]:
        since, (gone, again) = entry.since or "0", entry.gone or ("9999", "9999")
        if entry.field not in fields:
            continue
        if number < version_tuple(since):
            found[entry.field] = f"{since} and newer"
        elif version_tuple(gone) <= number < version_tuple(again):
            found[entry.field] = f"before {gone}, and {again} and newer"
    return found


def fields_of(csv: str) -> frozenset[str]:
    """The fields of a list."""
    lines = [line for line in csv.splitlines() if line.strip() and not line.startswith("#")]
    return frozenset(line.split(",", 1)[0].strip() for line in lines)
