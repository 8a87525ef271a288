"""Shows the choices of `gpufleet catalog`, as text for users or as data for programs."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from gpufleet.core.console import print_finding
from gpufleet.driver.choice import DriverChoice
from gpufleet.toolkit.resolve import ToolkitChoice


def driver_data(choice: DriverChoice) -> dict[str, Any]:
    """The choice as JSON types. `version` is the exact version, or else the newest known one."""
    return {
        "usable": not choice.blocked,
        "version": choice.version or choice.newest_known or None,
        "exact": choice.version is not None,
        "newest_known": choice.newest_known or None,
        "branch": choice.branch or None,
        "modules": choice.modules,
        "build": choice.build,
        "source": choice.source,
        "packages": asdict(choice.packages),
        "components": list(choice.components),
        "repository": asdict(choice.repository) if choice.repository else None,
        "reason": choice.reason,
        "findings": [finding.as_dict() for finding in choice.findings],
    }


def toolkit_data(choice: ToolkitChoice) -> dict[str, Any]:
    """The choice as JSON types."""
    return {
        "usable": not choice.blocked,
        "version": choice.version,
        "packages": list(choice.packages),
        "repository": asdict(choice.repository) if choice.packages else None,
        "reason": choice.reason,
        "findings": [finding.as_dict() for finding in choice.findings],
    }


def show_driver(console: Console, choice: DriverChoice, title: str) -> None:
    """Print the choice with its reason, its source and its findings."""
    if choice.blocked:
        console.print(Text(f"No usable driver for {title}", style="bold red"))
    else:
        version = choice.version or f"newest of the branch, {choice.newest_known or 'not known'}"
        console.print(Text(f"Driver {choice.branch} for {title}", style="bold"))
        packages, repository = choice.packages, choice.repository
        components = f" ({' '.join(choice.components)})" if choice.components else ""
        archive = f"the distribution's own archive{components}"
        rows = {
            "version": version,
            "modules": f"{choice.modules}, {choice.build}",
            "packages": " ".join(packages.install),
            "own versions": " ".join(packages.companions),
            "build": " ".join((*packages.build, *packages.headers)),
            "fabric manager": " ".join(packages.fabric_manager),
            "repository": repository.url if repository else archive,
            "key": " ".join(repository.key_fingerprints) if repository else "",
            "reason": choice.reason,
        }
        print_rows(console, rows)
    for finding in choice.findings:
        print_finding(console, finding)


def show_toolkit(console: Console, choice: ToolkitChoice, title: str) -> None:
    """Print the choice as text."""
    if choice.blocked:
        console.print(Text(f"No usable container toolkit for {title}", style="bold red"))
    else:
        console.print(Text(f"Container toolkit {choice.version} for {title}", style="bold"))
        rows = {
            "packages": " ".join(choice.packages),
            "repository": choice.repository.url,
            "key": " ".join(choice.repository.key_fingerprints),
            "reason": choice.reason,
        }
        print_rows(console, rows)
    for finding in choice.findings:
        print_finding(console, finding)


def print_rows(console: Console, entries: dict[str, str]) -> None:
    """Print names and values, one pair per line, without empty values."""
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for key, value in entries.items():
        if value:
            table.add_row(f"  {key}", Text(value))
    console.print(table)
