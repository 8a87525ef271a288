"""Finds the user's values for releases that break a part of the plan.

Pure. The user's values are not changed; each finding names the key and the part.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from gpufleet.core.entries import Entry, Sourced, entry_loader
from gpufleet.core.findings import Finding, Severity
from gpufleet.core.merge import value_at
from gpufleet.helm.chart_models import ChartCatalog
from gpufleet.helm.findings.releases import VALUE_IN_THE_WAY
from gpufleet.helm.release import Release
from gpufleet.monitoring.alert_models import load_alerts

ABSENT = object()


class Reliance(Entry):
    """One value that a part relies on. reliances.yaml describes the fields."""

    chart: str
    at: str
    only: tuple[Any, ...] | None = None
    never: tuple[Any, ...] = ()
    has: tuple[str, ...] | None = None
    includes: tuple[Any, ...] | None = None
    silent: bool = False
    series: str = ""
    effect: str

    def broken_by(self, value: Any) -> str:
        """How a value breaks the reliance, as the end of a sentence, or "" if it does not."""
        entries = list(value) if isinstance(value, list | tuple) else [value]
        if self.has is not None and not isinstance(value, list | tuple):
            return f"is {_shown(value)}"
        # compare entries by their name, arguments by their flag
        names = [
            entry.partition("=")[0] if isinstance(entry, str) else value_at(entry, "name", entry)
            for entry in entries
        ]
        missing = [name for name in self.has or () if name not in names]
        if missing:
            return f"is without {', '.join(missing)}"
        words = [word.strip() for entry in entries for word in str(entry or "").split(",")]
        allowed = ["" if one is None else one for one in self.includes or ()]
        broken = (
            (self.only is not None and not _among(value, self.only))
            or any(_among(entry, self.never) for entry in (*entries, *names))
            or (self.includes is not None and not set(words) & set(allowed))
            or (self.silent and _sends(value))
        )
        return f"is {_shown(value)}" if broken else ""


class ReliancePart(Entry):
    """A part of a plan, and the values that it relies on."""

    by: str
    instead: str
    blocks: bool = False
    relies: tuple[Reliance, ...]


class Reliances(Sourced):
    """reliances.yaml"""

    parts: dict[str, ReliancePart]


load_reliances = entry_loader(Reliances, "gpu_stack/reliances")


def reliance_conflicts(
    releases: Iterable[Release],
    parts: Iterable[str],
    catalog: ChartCatalog,
    settings: Mapping[str, object],
) -> Iterator[Finding]:
    """A finding for each value that one of these parts relies on and that does not fit.

    `settings`: by the names that reliances.yaml has in braces.
    """
    known = load_reliances()
    values = {release.chart: release.values for release in releases}
    for part in (known.parts[name] for name in parts):
        for one in part.relies:
            at, found = _found_at(values.get(one.chart), one.at)
            how = "" if found is ABSENT else _filled(one, settings).broken_by(found)
            alerts = [
                alert.name
                for alert in load_alerts().alerts
                if how and one.series and re.search(rf"\b{one.series}", alert.expr)
            ]
            if how:
                yield VALUE_IN_THE_WAY(
                    Severity.BLOCKER if part.blocks else None,
                    at=at,
                    key=catalog.charts[one.chart].values_key,
                    found=how,
                    by=f"the alerts {', '.join(alerts)}" if one.series else part.by,
                    effect=one.effect.format(**settings),
                    instead=part.instead,
                )


def _found_at(values: Any, path: str) -> tuple[str, Any]:
    """Path and value of the first removed (null) mapping above `path`, or else of `path` itself."""
    above = path.split(".")
    for length in range(1, len(above)):
        place = ".".join(above[:length])
        if value_at(values, place, ABSENT) is None:
            return place, None
    return path, value_at(values, path, ABSENT)


def _filled(reliance: Reliance, settings: Mapping[str, object]) -> Reliance:
    def fill(values: tuple[Any, ...] | None) -> tuple[Any, ...] | None:
        return values and tuple(settings.get(str(value).strip("{}"), value) for value in values)

    filled = {"only": fill(reliance.only), "includes": fill(reliance.includes)}
    return reliance.model_copy(update=filled)


def _among(value: Any, values: tuple[Any, ...]) -> bool:
    """True if a value is one of these, with the same type: 1 is not True."""
    return any(type(value) is type(one) and value == one for one in values)


def _shown(value: Any) -> str:
    """A value as text, without content that may be secret."""
    if isinstance(value, bool) or value is None:
        return str(value)
    kinds = {str: "a text", int: "a number", float: "a number"}
    kinds |= {list: "a list", tuple: "a list"}
    return kinds.get(type(value), "a mapping")


def _sends(config: Any) -> bool:
    """True if Alertmanager's configuration is not the chart's default. The only receiver of that
    default is named "null"."""
    if not config or not isinstance(config, Mapping):
        return bool(config)
    receivers = config.get("receivers")
    return not receivers or any(one != {"name": "null"} for one in receivers)
