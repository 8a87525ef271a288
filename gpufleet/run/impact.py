"""Summarises the impact of a plan on a fleet: interruptions, package sources, files. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from gpufleet.core.names import count_noun
from gpufleet.core.visible import one_line
from gpufleet.run.report import HostReport

MAX_PATHS = 6  # in a line; more are counted by folder, and the JSON report names all
UNCHANGED = ("no-op", "wait", "blocked")  # actions of a release
REBOOTS = {"possible": "{} if the driver cannot be loaded otherwise",
           "manual": "none; {} may need one, which node_reboot does not allow"}  # fmt: skip


def impact_lines(hosts: Sequence[HostReport]) -> list[str]:
    """The impact on planned hosts and clusters, one line per kind, or [] without changes.

    The first line, as an example: "restarts: docker.service on 4 hosts (12 containers running),
    nvidia-persistenced on 1 host"
    """
    planned = [host for host in hosts if host.status == "planned"]
    known = [host.plan["impact"] for host in planned if host.plan.get("impact")]
    kinds = _of_nodes(planned, known) if known else {}
    kinds["releases"] = _releases(planned)
    return [one_line(f"{name}: {', '.join(said)}") for name, said in kinds.items() if said]


def _of_nodes(
    planned: Sequence[HostReport], known: Sequence[dict[str, Any]]
) -> dict[str, list[str]]:
    away = [host for host in planned if host.plan.get("impact", {}).get("unloads_driver")]
    pods = sum(host.plan["impact"]["gpu_pods"] for host in away)
    work = f"; {count_noun(pods, 'pod')} with GPUs there now" if pods else ""
    gone = f"on {count_noun(len(away), 'host')}{work}" if away else "none"
    return {
        "restarts": _restarts(known) or ["none"],
        "reboots": _reboots(known) or ["none"],
        "GPUs unavailable while the driver changes": [gone],
        "driver": _drivers(planned),
        "package source": _sources(known),
        "files": _files(known),
    }


def _restarts(known: Iterable[dict[str, Any]]) -> list[str]:
    found = [pair for impact in known for pair in impact["restarts"].items()]
    containers: Counter[str] = Counter()
    for unit, running in found:
        if running is not None:
            containers[unit] += running
    hosts = Counter(unit for unit, _ in found)
    lines = []
    for unit, line in zip(sorted(hosts), _on_hosts(hosts), strict=True):
        work = f" ({count_noun(containers[unit], 'container')} running)"
        lines.append(line + work if unit in containers else line)
    return lines


def _reboots(known: Sequence[dict[str, Any]]) -> list[str]:
    count = Counter(impact["reboot"] for impact in known)
    kinds = [kind for kind in REBOOTS if count[kind]]
    return [REBOOTS[kind].format(count_noun(count[kind], "host")) for kind in kinds]


def _drivers(planned: Iterable[HostReport]) -> list[str]:
    count: Counter[str] = Counter()
    for host in planned:
        moved = host.roles.get("driver", {})
        if moved and moved["before"] != moved["after"]:
            count[f"{moved['before'] or 'none'} -> {moved['after'] or 'newest'}"] += 1
    return _on_hosts(count)


def _sources(known: Iterable[dict[str, Any]]) -> list[str]:
    found = [pair for impact in known for pair in impact["sources"].items()]
    moves = (f"{name}: {moved['before'] or 'new'} -> {moved['after']}" for name, moved in found)
    return _on_hosts(Counter(moves))


def _files(known: Iterable[dict[str, Any]]) -> list[str]:
    paths = Counter(path for impact in known for path in impact["files"])
    if len(paths) <= MAX_PATHS:
        return _on_hosts(paths)
    below = Counter("/".join(path.split("/")[:3]) for path in paths)
    counts = ", ".join(f"{folder} {number}" for folder, number in sorted(below.items()))
    hosts = count_noun(max(paths.values()), "host")
    return [f"{count_noun(len(paths), 'path')} on up to {hosts} ({counts})"]


def _on_hosts(count: Counter[str]) -> list[str]:
    return [f"{what} on {count_noun(number, 'host')}" for what, number in sorted(count.items())]


def _releases(planned: Iterable[HostReport]) -> list[str]:
    actions = [each["action"] for host in planned for each in host.plan.get("releases", ())]
    count = Counter(action for action in actions if action not in UNCHANGED)
    return [f"{action} {number}" for action, number in sorted(count.items())]
