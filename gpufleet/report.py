"""What a run did, per host: as data, as JSON and as the table at the end."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from rich.console import Console
from rich.table import Table

from gpufleet.findings import Finding, Severity

STYLES = {Severity.BLOCKER: "bold red", Severity.WARNING: "yellow", Severity.INFO: "cyan"}


@dataclass(slots=True)
class HostReport:
    """One host's part of the report; `seconds`: its facts and its operations, without waiting."""

    name: str
    kind: Literal["node", "cluster"] = "node"
    changed: int = 0
    failed: bool = False
    driver: dict[str, str | None] = field(default_factory=dict)  # before, after
    toolkit: dict[str, str | None] = field(default_factory=dict)  # before, after
    exporter: dict[str, str | None] = field(default_factory=dict)  # before, after; {}: none wanted
    runtimes: dict[str, str] = field(default_factory=dict)  # name -> configured, changed, …
    releases: dict[str, dict[str, str | None]] = field(default_factory=dict)  # of a cluster
    needs: list[str] = field(default_factory=list)  # what a person still has to do
    findings: list[Finding] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)  # what the failed operation said
    plan: dict[str, Any] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def steps(self) -> list[str]:
        """What would be done, in order; the list of the plan itself."""
        steps: list[str] = self.plan.setdefault("steps", [])
        return steps

    def as_dict(self) -> dict[str, Any]:
        data = asdict(self)
        data["findings"] = [finding.as_dict() for finding in self.findings]
        data["seconds"] = round(self.seconds, 2)
        del data["name"]
        return data


def as_json(hosts: Iterable[HostReport]) -> str:
    """`{"hosts": {name: …}}`, indented, with a newline at the end."""
    return json.dumps({"hosts": {host.name: host.as_dict() for host in hosts}}, indent=2) + "\n"


def write_json(path: Path, hosts: Iterable[HostReport]) -> None:
    """Write the report; a relative path counts from the working directory."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(as_json(hosts))


def show(console: Console, hosts: list[HostReport], *, dry: bool = False) -> None:
    """The table, then every finding and error below it, then one line that sums up."""
    nodes = [host for host in hosts if host.kind == "node"]
    clusters = [host for host in hosts if host.kind == "cluster"]
    if nodes or not clusters:
        console.print(_nodes(nodes, dry=dry))
    if clusters:
        console.print(_clusters(clusters, dry=dry))
    for host in hosts if dry else ():
        for step in host.steps:
            console.print(f"[green]would[/] {host.name}: ", end="")
            console.print(step, markup=False, highlight=False)
    for host in hosts:
        for finding in host.findings:
            if dry or finding.severity is not Severity.INFO:
                show_finding(console, host.name, finding)
        for error in host.errors:
            console.print(f"[bold red]failed[/] {host.name}: ", end="")
            console.print(error, markup=False, highlight=False)
    console.print(_summary(hosts, dry=dry), highlight=False)


def _nodes(hosts: list[HostReport], *, dry: bool) -> Table:
    exporters = any(host.exporter for host in hosts)
    moved = ("driver", "toolkit", *(["exporter"] if exporters else []))
    table = _table(
        "Plan" if dry else "GPU nodes",
        ("host", *moved, "runtimes", "changes", "still needed", "time"),
    )
    for host in hosts:
        table.add_row(
            host.name,
            _movement(host.driver),
            _movement(host.toolkit),
            *([_movement(host.exporter)] if exporters else []),
            ", ".join(f"{name} {state}".strip() for name, state in host.runtimes.items()),
            _changes(host, dry=dry),
            "; ".join(host.needs),
            f"{host.seconds:.1f} s",
        )
    return table


def _clusters(hosts: list[HostReport], *, dry: bool) -> Table:
    title = "Plan of the clusters" if dry else "Clusters"
    table = _table(title, ("cluster", "releases", "changes", "still needed", "time"))
    for host in hosts:
        table.add_row(
            host.name,
            "\n".join(f"{name} {_movement(moved)}" for name, moved in host.releases.items()),
            _changes(host, dry=dry),
            "; ".join(host.needs),
            f"{host.seconds:.1f} s",
        )
    return table


def _table(title: str, columns: tuple[str, ...]) -> Table:
    table = Table(title=title, title_justify="left")
    for column in columns:
        table.add_column(column, overflow="fold")
    return table


def show_finding(console: Console, host: str, finding: Finding) -> None:
    """A finding as people read it: code and host, what and why, what to do."""
    style = STYLES[finding.severity]
    console.print(f"[{style}]{finding.code} {finding.severity.value}[/] {host}: ", end="")
    console.print(finding.message, markup=False, highlight=False)
    console.print(f"  {finding.remedy}", markup=False, highlight=False, style="dim")


def _movement(change: dict[str, str | None]) -> str:
    before, after = change.get("before"), change.get("after")
    if before == after:
        return after or "-"
    return f"{before or 'none'} -> {after or 'none'}"


def _changes(host: HostReport, *, dry: bool) -> str:
    if host.failed:
        return "[bold red]failed[/]"
    if host.changed == 0:
        return "no changes"
    return f"{host.changed} planned" if dry else str(host.changed)


def _summary(hosts: list[HostReport], *, dry: bool) -> str:
    failed = sum(host.failed for host in hosts)
    unchanged = sum(host.changed == 0 and not host.failed for host in hosts)
    changed = len(hosts) - failed - unchanged
    verb = "to change" if dry else "changed"
    return f"{len(hosts)} hosts: {changed} {verb}, {unchanged} with no changes, {failed} failed"
