"""Judges whether Prometheus evaluates the rules that gpufleet wrote. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from gpufleet.core.names import count_noun
from gpufleet.core.quoting import quote_field
from gpufleet.doctor.models import Link, Verdict
from gpufleet.kube.parse import seconds_of
from gpufleet.kube.prometheus import DISCOVERY_SECONDS, LoadedRules, PrometheusService

Item = Mapping[str, Any]


def judge_rules(
    place: PrometheusService, written: Iterable[Item], loaded: LoadedRules | str, now: int
) -> Link | None:
    """The reading of gpufleet's rules, None without one. `written`: its PrometheusRules; `loaded`:
    the rules of that Prometheus, or why it does not list them."""
    wanted = {name for each in written if _is_settled(each, now) for name in _rule_names(each)}
    if not wanted:
        return None
    if isinstance(loaded, str):
        fault = f"{place} does not list its rules: {loaded.rstrip('.')}."
        return Link("no answer", fault, verdict=Verdict.UNKNOWN, place=place.full_name)
    every = count_noun(len(wanted), "rule")
    where = place.full_name
    if missing := sorted(wanted - loaded.keys()):
        fault = f"{place} has not loaded {len(missing)} of {every}, such as {missing[0][1]}."
        return Link(f"{len(wanted) - len(missing)} of {every} loaded", fault, place=where)
    if broken := sorted(name for name in wanted if loaded[name]):
        why = quote_field(loaded[broken[0]]).rstrip(".")
        fault = f"{place} cannot evaluate the rule {broken[0][1]}: {why}."
        return Link(f"{len(broken)} of {every} fail", fault, place=where)
    return Link(f"{every} loaded", place=where)


def _is_settled(rules: Item, now: int) -> bool:
    """True if the rules have been unchanged long enough to be loaded."""
    about = rules["metadata"]
    written = [entry.get("time") for entry in about.get("managedFields") or ()]
    last = max(map(seconds_of, [about.get("creationTimestamp"), *written]))
    return now - last > DISCOVERY_SECONDS


def _rule_names(rules: Item) -> set[tuple[str, str]]:
    """Group and name of each rule of a PrometheusRule."""
    return {
        (str(group["name"]), str(rule.get("alert") or rule.get("record")))
        for group in rules["spec"].get("groups") or ()
        for rule in group.get("rules") or ()
    }
