"""Shortens lists of hosts: ranges of names as in Slurm and ClusterShell, shared findings."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import replace
from typing import TypeVar

from gpufleet.core.findings import KNOWN_KINDS, Finding, Severity, by_severity
from gpufleet.core.visible import one_line

LOCAL_HOST = "@local"  # the machine's name in pyinfra, as a host and as an inventory

DETAILS = "`gpufleet doctor INVENTORY --limit HOST` shows those of one host."
MAX_SHOWN_NAMES = 4  # names or ranges of names in a sentence
MAX_DETAILED_HOSTS = 3  # hosts whose differing details are shown
Thing = TypeVar("Thing", bound=Hashable)
_NUMBERED = re.compile(r"(?P<head>.*?)(?P<number>\d+)(?P<tail>\D*)", re.ASCII)


def fold_names(names: Iterable[str]) -> list[str]:
    """The names, with runs of numbers as ranges. Digits are kept: [08-10], and 8 is not 08."""
    found: list[str] = []
    run: list[re.Match[str]] = []
    for name in map(one_line, names):
        match = _NUMBERED.fullmatch(name)
        if match and run and _follows(run[-1], match):
            run.append(match)
            continue
        found += _range(run)
        run = [match] if match else []
        if not match:
            found.append(name)
    return found + _range(run)


def _follows(last: re.Match[str], match: re.Match[str]) -> bool:
    same = (last["head"], last["tail"]) == (match["head"], match["tail"])
    padded = match["number"].startswith("0") or last["number"].startswith("0")
    alike = not padded or len(match["number"]) == len(last["number"])
    return same and alike and int(match["number"]) == int(last["number"]) + 1


def _range(run: list[re.Match[str]]) -> list[str]:
    if len(run) < 2:
        return [match.group() for match in run]
    first, last = run[0], run[-1]
    return [f"{first['head']}[{first['number']}-{last['number']}]{first['tail']}"]


def count_noun(number: int, word: str) -> str:
    """A number with its noun: 1 host, 2 hosts."""
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


def list_names(items: Sequence[str], most: int = 5) -> str:
    """The first items for a sentence: "a, b and 3 more"."""
    more = f" and {len(items) - most} more" if len(items) > most else ""
    return ", ".join(items[:most]) + more


def name_hosts(names: Sequence[str]) -> str:
    """Hosts for a sentence: the only name, or the number and the first names."""
    short = fold_names(names)
    shown = ", ".join(short[:MAX_SHOWN_NAMES]) + (", …" if len(short) > MAX_SHOWN_NAMES else "")
    return shown if len(names) == 1 else f"{count_noun(len(names), 'host')} ({shown})"


def group_by_thing(found: Iterable[tuple[str, Thing]]) -> dict[Thing, tuple[str, ...]]:
    """Each thing once, with the names of its hosts, in the order of first appearance."""
    hosts: dict[Thing, dict[str, None]] = defaultdict(dict)
    for name, thing in found:
        hosts[thing][name] = None
    return {thing: tuple(names) for thing, names in hosts.items()}


def same_findings(found: Iterable[tuple[str, Finding]]) -> list[tuple[Finding, tuple[str, ...]]]:
    """Each finding once, with the names of its hosts, the most severe first. Findings that differ
    only in the host in a command of the remedy count as the same."""
    own: dict[Finding, Finding] = {}
    general: list[tuple[str, Finding]] = []
    for name, finding in found:
        limit = rf"--limit {re.escape(one_line(name))}(?![\w-]|\.\w)"
        same = replace(finding, remedy=re.sub(limit, "--limit HOST", finding.remedy))
        general.append((name, same))
        own[same] = finding
    hosts = group_by_thing(general)
    alike = [(each if len(names) > 1 else own[each], names) for each, names in hosts.items()]
    return _fold_infos(alike)


def _fold_infos(
    found: Iterable[tuple[Finding, tuple[str, ...]]],
) -> list[tuple[Finding, tuple[str, ...]]]:
    """Sort by severity, and merge infos of one code whose details differ by host, if there are too
    many hosts to show them."""
    hosts = dict(found)
    infos: dict[str, list[Finding]] = defaultdict(list)
    entries: dict[Finding, tuple[str, ...]] = {}
    for each in by_severity(hosts):
        if each.severity is Severity.INFO:
            infos[each.code].append(each)
        else:
            entries[each] = hosts[each]
    for code, alike in infos.items():
        one = alike[0]
        names = tuple(dict.fromkeys(name for each in alike for name in hosts[each]))
        # the same hosts: such as infos of two runtimes on each host
        same = len({hosts[each] for each in alike}) == 1
        if same or len(names) <= MAX_DETAILED_HOSTS:
            entries |= {each: hosts[each] for each in alike}
            continue
        if len(alike) > 1:
            title = KNOWN_KINDS[code].title if code in KNOWN_KINDS else one.message
            one = replace(one, message=f"{title}; the details differ by host.", remedy=DETAILS)
        entries[one] = names
    return list(entries.items())
